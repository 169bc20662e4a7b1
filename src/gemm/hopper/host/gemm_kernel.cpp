#include "gemm/hopper/host/gemm_kernel.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <string>

#include "gemm/contract/skinny.h"
#include "tandem/error.h"

namespace tandem::cuda {

extern const GemmKernel kBf16Tile128x256;
extern const GemmKernel kBf16Tile128x256KxN;
extern const GemmKernel kBf16Tile128x128;
extern const GemmKernel kBf16Tile128x192;
extern const GemmKernel kF16Tile128x256;
extern const GemmKernel kF16Tile128x256KxN;
extern const GemmKernel kE4m3ToBf16Tile128x128;
extern const GemmKernel kE4m3ToF16Tile128x128;
extern const GemmKernel kE4m3ToE4m3Tile128x128;
extern const GemmKernel kBf16Gated128x256;
extern const GemmKernel kF16Gated128x256;
extern const GemmKernel kE4m3ToBf16Gated128x128;
extern const GemmKernel kE4m3ToE4m3Gated128x128;
extern const GemmKernel kE4m3ToBf16Blocks128x256;
extern const GemmKernel kE4m3ToF16Blocks128x256;
extern const GemmKernel kE4m3ToBf16GatedBlocks128x256;
extern const GemmKernel kE4m3ToBf16Fast128x256;
extern const GemmKernel kE4m3ToF16Fast128x256;
extern const GemmKernel kE4m3ToBf16GatedFast128x256;
extern const GemmKernel kBf16Groups128x256;
extern const GemmKernel kF16Groups128x256;
extern const GemmKernel kBf16GatedGroups128x256;
extern const GemmKernel kF16GatedGroups128x256;
extern const GemmKernel kBf16Groups64x128;
extern const GemmKernel kBf16GatedGroups64x128;
extern const GemmKernel kF16Groups64x128;
extern const GemmKernel kF16GatedGroups64x128;
extern const GemmKernel kE4m3ToBf16Groups32x128;
extern const GemmKernel kE4m3ToBf16GatedGroups32x128;
extern const GemmKernel kE4m3ToE4m3GatedGroups32x256;
extern const GemmKernel kE4m3ToBf16Groups128x192;
extern const GemmKernel kE4m3ToBf16GatedGroups128x256;
extern const GemmKernel kE4m3ToE4m3GatedGroups128x256;

extern const SkinnyKernel kBf16Skinny16;
extern const SkinnyKernel kBf16Skinny32;
extern const SkinnyKernel kBf16Skinny48;
extern const SkinnyKernel kBf16Skinny64;
extern const SkinnyKernel kBf16Skinny128;
extern const SkinnyKernel kBf16Skinny256;
extern const SkinnyKernel kBf16Normed16;
extern const SkinnyKernel kBf16Normed32;
extern const SkinnyKernel kBf16Normed48;
extern const SkinnyKernel kBf16Normed64;

namespace {

/// Describes a kernel, or the kernel that a GEMM needs.
template <class T>
std::string describe(const T& of, bool is_grouped, bool gated, bool quantises, const char* scales) {
  const std::string types =
      of.type == of.out_type ? name(of.type) : fmt::format("{} to {}", name(of.type), name(of.out_type));
  return fmt::format("{} {}x{}{}{}{}{}{}", types, of.tile_m, of.tile_n,
                     of.b_layout == BLayout::kKxN ? " with B as KxN" : "", gated ? " gated" : "",
                     is_grouped ? " with groups" : "", quantises ? " with scales of C" : "", is_grouped ? "" : scales);
}

/// Returns whether rows and matrices start at multiples of 16 bytes, as TMA needs.
bool is_for_tma(const Gemm& gemm) {
  constexpr Size kBytes = 16;
  const auto is_aligned = [](const void* p) { return reinterpret_cast<std::uintptr_t>(p) % kBytes == 0; };
  return gemm.k % (kBytes / size_of(gemm.type)) == 0 &&
         columns_after(gemm.activation, gemm.n) % (kBytes / size_of(gemm.out_type)) == 0 && is_aligned(gemm.a) &&
         is_aligned(gemm.b) && is_aligned(gemm.destination.c());
}

bool is_for(const GemmKernel& kernel, const Gemm& gemm) {
  return kernel.type == gemm.type && kernel.out_type == gemm.out_type && kernel.tile_m == gemm.tile_m &&
         kernel.tile_n == gemm.tile_n && kernel.b_layout == gemm.b_layout &&
         kernel.is_grouped == (gemm.groups.count > 0) && kernel.gated == is_gated(gemm.activation) &&
         kernel.quantises == (gemm.scales.out != nullptr) && (!kernel.fast || gemm.fast_accumulation) &&
         (kernel.is_grouped || kernel.blocks || !gemm.scales.blocks);
}

}  // namespace

std::span<const GemmKernel* const> gemm_kernels() {
  // Fast kernels stand before the precise ones, which compute whatever has no fast one.
  static const std::array kernels{&kBf16Tile128x256,
                                  &kBf16Tile128x256KxN,
                                  &kBf16Tile128x128,
                                  &kF16Tile128x256,
                                  &kF16Tile128x256KxN,
                                  &kE4m3ToBf16Tile128x128,
                                  &kE4m3ToF16Tile128x128,
                                  &kE4m3ToE4m3Tile128x128,
                                  &kBf16Tile128x192,
                                  &kBf16Gated128x256,
                                  &kF16Gated128x256,
                                  &kE4m3ToBf16Gated128x128,
                                  &kE4m3ToE4m3Gated128x128,
                                  &kE4m3ToBf16Fast128x256,
                                  &kE4m3ToF16Fast128x256,
                                  &kE4m3ToBf16GatedFast128x256,
                                  &kE4m3ToBf16Blocks128x256,
                                  &kE4m3ToF16Blocks128x256,
                                  &kE4m3ToBf16GatedBlocks128x256,
                                  &kBf16Groups128x256,
                                  &kF16Groups128x256,
                                  &kBf16GatedGroups128x256,
                                  &kF16GatedGroups128x256,
                                  &kBf16Groups64x128,
                                  &kBf16GatedGroups64x128,
                                  &kF16Groups64x128,
                                  &kF16GatedGroups64x128,
                                  &kE4m3ToBf16Groups32x128,
                                  &kE4m3ToBf16GatedGroups32x128,
                                  &kE4m3ToE4m3GatedGroups32x256,
                                  &kE4m3ToBf16Groups128x192,
                                  &kE4m3ToBf16GatedGroups128x256,
                                  &kE4m3ToE4m3GatedGroups128x256};
  return kernels;
}

std::span<const SkinnyKernel* const> skinny_kernels() {
  static const std::array kernels{&kBf16Skinny16,  &kBf16Skinny32, &kBf16Skinny48, &kBf16Skinny64, &kBf16Skinny128,
                                  &kBf16Skinny256, &kBf16Normed16, &kBf16Normed32, &kBf16Normed48, &kBf16Normed64};
  return kernels;
}

const SkinnyKernel* find_skinny_kernel(const Gemm& gemm, int sms) {
  // A block streams B for 64 columns, so all blocks should have about the same number of columns. Up to 16 rows, and
  // for less depth, cuBLASLt is as fast or faster (bench/results/gemm_h200.json), but it adds nothing over PEs.
  constexpr Size kFewestRows = 17, kLeastDepth = 8192;
  if (!is_for_tma(gemm) || !skinny_suits(gemm, sms)) return nullptr;
  const GemmSum* const sum = gemm.destination.sum();
  if (sum == nullptr && (gemm.m < kFewestRows || gemm.m > kSkinnyBlock || gemm.k < kLeastDepth)) return nullptr;
  for (const SkinnyKernel* kernel : skinny_kernels())
    if (kernel->type == gemm.type && kernel->type == gemm.out_type && gemm.m <= kernel->rows &&
        kernel->normed == (sum != nullptr && sum->norm.weight != nullptr))
      return kernel;
  return nullptr;
}

bool has_gemm_kernel(const Gemm& gemm) {
  return is_for_tma(gemm) && std::ranges::any_of(gemm_kernels(), [&](auto* kernel) { return is_for(*kernel, gemm); });
}

const GemmKernel& find_gemm_kernel(const Gemm& gemm) {
  std::string known;
  for (const GemmKernel* kernel : gemm_kernels()) {
    if (is_for(*kernel, gemm)) return *kernel;
    known += (known.empty() ? "" : ", ") + describe(*kernel, kernel->is_grouped, kernel->gated, kernel->quantises,
                                                    kernel->blocks ? " with scales of all kinds"
                                                    : kernel->fast ? " with fast accumulation"
                                                                   : "");
  }
  throw Unsupported(
      fmt::format("gemm: tiles of {} given, the GPU's kernels are {}",
                  describe(gemm, gemm.groups.count > 0, is_gated(gemm.activation), gemm.scales.out != nullptr,
                           gemm.scales.blocks ? " with scales of blocks" : ""),
                  known));
}

}  // namespace tandem::cuda
