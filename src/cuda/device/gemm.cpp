#include "cuda/device/gemm.h"

#include <fmt/format.h>

#include <limits>
#include <vector>

#include "cuda/device/gather_rows.h"
#include "cuda/device/register.h"
#include "cuda/driver/error.h"
#include "gemm/contract/destination.h"
#include "gemm/contract/epilogue.h"
#include "gemm/contract/groups.h"
#include "gemm/contract/scales.h"
#include "gemm/contract/tile_table.h"
#include "tandem/error.h"

namespace tandem::cuda {

namespace {

constexpr Size kTmaBytes = 16;

void require(bool holds, const char* field, Size given, const std::string& allowed) {
  if (!holds) throw InvalidArgument(fmt::format("gemm: {} is {}, allowed: {}", field, given, allowed));
}

void require_aligned(const void* address, const char* field) {
  if (reinterpret_cast<std::uintptr_t>(address) % kTmaBytes != 0)
    throw InvalidArgument(fmt::format("gemm: {} is at {}, allowed: multiples of {} bytes", field, address, kTmaBytes));
}

/// Returns the major number of the current GPU's compute capability, 0 without a GPU.
int compute_capability() {
  int device = 0;
  int major = 0;
  if (cudaGetDevice(&device) != cudaSuccess) return 0;
  return cudaDeviceGetAttribute(&major, cudaDevAttrComputeCapabilityMajor, device) == cudaSuccess ? major : 0;
}

constexpr int kHopper = 9;

void require_hopper() {
  if (const int major = compute_capability(); major != kHopper)
    throw Unsupported(
        fmt::format("gemm: kernels of fused GEMMs are Hopper's (compute capability 9), this GPU has {}", major));
}

void check_chunks(const Gemm& gemm) {
  require(gemm.groups.column_chunks <= kMostTableChunks, "groups.column_chunks", gemm.groups.column_chunks,
          fmt::format("up to {} on GPUs", kMostTableChunks));
}

void check_grouped(const Gemm& gemm) {
  require_aligned(gemm.groups.gathered, "groups.gathered");
  if (gemm.groups.a_rows != nullptr && gemm.groups.gathered == nullptr)
    throw InvalidArgument("gemm: groups.gathered is null, allowed: an address where a_rows is set");
  if (gemm.groups.a_rows != nullptr && gemm.gate.words != nullptr)
    throw Unsupported("gemm: groups.a_rows and a gate are set, GPUs gather all rows before the GEMM");
  require_aligned(gemm.groups.panels, "groups.panels");
  check_chunks(gemm);
  const Size most_scales = max(scales_of_a(gemm), scales_of_b(gemm));
  require(most_scales <= std::numeric_limits<std::int32_t>::max(), "number of scales", most_scales,
          "up to 2^31 - 1 on GPUs");
}

}  // namespace

void check_fused_gemm(const Gemm& gemm) {
  require_hopper();
  find_gemm_kernel(gemm);
  check_chunks(gemm);
}

void check_gemm(const Gemm& gemm, int sm_count) {
  require_hopper();
  const auto multiple = [](Size unit) {
    return fmt::format("multiples of {} (TMA's rows begin at {} bytes)", unit, kTmaBytes);
  };
  const Size k_unit = kTmaBytes / size_of(gemm.type);
  const Size of_c = kTmaBytes / size_of(gemm.out_type) * (is_gated(gemm.activation) ? 2 : 1);
  const Size n_unit = gemm.b_layout == BLayout::kKxN ? max(k_unit, of_c) : of_c;
  require(gemm.m >= 0, "m", gemm.m, "0 or more");
  require(gemm.n >= 0 && gemm.n % n_unit == 0, "n", gemm.n, multiple(n_unit));
  require(gemm.k >= 1 && gemm.k % k_unit == 0, "k", gemm.k, multiple(k_unit));
  require(gemm.sms >= 0 && gemm.sms <= sm_count, "sms", gemm.sms, fmt::format("0 (all) to {}", sm_count));
  require(gemm.node_size >= 1, "node_size", gemm.node_size, "1 or more");
  require_aligned(gemm.a, "a");
  require_aligned(gemm.own_a, "own_a");
  require_aligned(gemm.b, "b");
  require_aligned(gemm.destination.c(), "c");
  require_aligned(gemm.bias, "bias");
  const GemmScales& scales = gemm.scales;
  if (gemm.groups.count == 0 && scales.out != nullptr)
    throw Unsupported("gemm: scales.out is set, the GPU's kernels make scales of C with groups only");
  if (size_of(gemm.type) != 1 && (scales.a != nullptr || scales.b != nullptr || scales.c != nullptr))
    throw Unsupported(fmt::format("gemm: scales are set with type {}, the GPU's kernels scale fp8", name(gemm.type)));
  if (size_of(gemm.out_type) == 1 && gemm.destination.ring() != nullptr)
    throw Unsupported(fmt::format("gemm: a ring of {} given, the GPU's kernels add 16-bit sums", name(gemm.out_type)));
  if (gemm.destination.sum() != nullptr && skinny_kernel(gemm, sm_count) == nullptr)
    throw Unsupported(fmt::format("gemm: a sum over PEs of {}x{}x{} {} given, no kernel adds that up", gemm.m, gemm.n,
                                  gemm.k, name(gemm.type)));
  require(gemm.destination.broadcast() == nullptr || gemm.node_size <= kMostShards, "node_size", gemm.node_size,
          fmt::format("up to {} where tiles go to all PEs", kMostShards));
  check_destination(gemm);
  check_epilogue(gemm);
  check_groups(gemm);
  if (gemm.groups.count > 0) return check_grouped(gemm);
  if (gemm.order != TileOrder::kRowMajor) {
    require(gemm.rows.rows == gemm.m, "rows.rows", gemm.rows.rows, "m");
    require(gemm.rows.shards >= 1, "rows.shards", gemm.rows.shards, "1 or more");
    require(gemm.rows.splits >= 1, "rows.splits", gemm.rows.splits, "1 or more");
    require(gemm.rows.splits == 1 || gemm.rows.align % gemm.tile_m == 0, "rows.align", gemm.rows.align,
            "multiples of tile_m where splits is more than 1");
    return;
  }
  const GemmLocal* const local = gemm.destination.local();
  const bool is_plain = gemm.destination.sum() != nullptr || (local != nullptr && !local->notify.words);
  if (gemm.own_a != nullptr || gemm.gate.words != nullptr || !is_plain)
    throw Unsupported("gemm: own_a, gates, notifications and scattered tiles need an order that follows shards");
}

const SkinnyKernel* skinny_kernel(const Gemm& gemm, int sm_count) {
  return compute_capability() == kHopper ? find_skinny_kernel(gemm, sm_count) : nullptr;
}

bool has_own_kernel(const Gemm& gemm) { return compute_capability() == kHopper && has_gemm_kernel(gemm); }

void register_gemms() {
  if (compute_capability() != kHopper) return;
  static std::vector<detail::DeviceKernel> kernels;  // never changed after this call, so that pointers to it hold
  for (const GemmKernel* kernel : gemm_kernels()) kernels.emplace_back().load = kernel->load;
  kernels.emplace_back().load = load_gather_rows;
  for (const SkinnyKernel* kernel : skinny_kernels()) kernels.emplace_back().load = kernel->load;
  for (detail::DeviceKernel& kernel : kernels) registered_kernels().push_back(&kernel);
}

}  // namespace tandem::cuda
