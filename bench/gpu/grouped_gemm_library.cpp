// The GPU's grouped GEMM for programs in Python (bench/python/grouped_gemm.py), without a world.

#include <cstdio>
#include <exception>

#include "cuda/device/gather_rows.h"
#include "cuda/driver/error.h"
#include "gemm/contract/groups.h"
#include "gemm/contract/scales.h"
#include "gemm/hopper/host/gemm_kernel.h"
#include "tandem/error.h"

namespace tandem::bench {

namespace {

/// As the script declares it.
struct Call {
  const void* a;
  const void* b;
  void* c;
  const GemmPanel* panels;
  const std::int32_t* panel_count;
  const std::int32_t* a_rows;
  void* gathered;
  Signal* tiles_of_chunk;
  const float* scales_of_a;
  const float* scales_of_b;
  float* scales_of_c;
  Size m, n, k, rows_of_a;
  int groups, most_panels, column_chunks, activation, type, out_type, blocks, tile_m, tile_n, sms;
};

Gemm gemm_of(const Call& call) {
  Gemm gemm;
  gemm.m = call.m;
  gemm.n = call.n;
  gemm.k = call.k;
  gemm.tile_m = call.tile_m;
  gemm.tile_n = call.tile_n;
  gemm.a = call.a;
  gemm.b = call.b;
  gemm.type = static_cast<DType>(call.type);
  gemm.out_type = static_cast<DType>(call.out_type);
  gemm.activation = static_cast<Activation>(call.activation);
  gemm.scales.a = call.scales_of_a;
  gemm.scales.b = call.scales_of_b;
  gemm.scales.out = call.scales_of_c;
  gemm.scales.blocks = call.blocks != 0;
  gemm.scales.a_per_row = gemm.scales.b_per_column = call.scales_of_a != nullptr && call.blocks == 0;
  gemm.groups.count = call.groups;
  gemm.groups.panels = call.panels;
  gemm.groups.panel_count = call.panel_count;
  gemm.groups.most_panels = call.most_panels;
  gemm.groups.a_rows = call.a_rows;
  gemm.groups.rows_of_a = call.rows_of_a;
  gemm.groups.gathered = call.gathered;
  gemm.groups.column_chunks = call.column_chunks;
  gemm.destination = GemmLocal{call.c, {Signals(call.tiles_of_chunk, 0, 0), true}};
  return gemm;
}

}  // namespace

}  // namespace tandem::bench

/// Enqueues one GEMM; returns 0, or 1 after an error that it prints.
extern "C" __attribute__((visibility("default"))) int tandem_bench_grouped_gemm(const tandem::bench::Call* call,
                                                                                int early, void* stream) {
  using namespace tandem;
  try {
    const Gemm gemm = bench::gemm_of(*call);
    check_groups(gemm);
    check_scales(gemm);
    const cuda::GemmKernel& kernel = cuda::find_gemm_kernel(gemm);
    if (!cuda::has_gemm_kernel(gemm))
      throw Unsupported("rows and addresses are no multiples of 16 bytes, which TMA needs");
    if (gemm.m == 0 || gemm.n == 0) return 0;  // TMA has no maps of empty matrices
    int sms = 0;
    int device = 0;
    cuda::check(cudaGetDevice(&device), "cudaGetDevice");
    cuda::check(cudaDeviceGetAttribute(&sms, cudaDevAttrMultiProcessorCount, device), "cudaDeviceGetAttribute");
    if (call->sms > 0) sms = call->sms;
    kernel.load();
    const cuda::Context context{};
    auto* const native = static_cast<cudaStream_t>(stream);
    const Gemm computed = call->a_rows != nullptr ? cuda::gather_rows(gemm, sms, native) : gemm;
    kernel.launch({&computed, &context, sms, early != 0, native, {}});
    return 0;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "grouped_gemm: %s\n", error.what());
    return 1;
  }
}
