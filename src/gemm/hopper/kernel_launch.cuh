#pragma once
/// Loads and launches a FusedKernel.

#include "cuda/driver/error.h"
#include "gemm/hopper/fused_kernel.cuh"
#include "gemm/hopper/host/gemm_kernel.h"

namespace tandem::cuda {

/// A kernel that is loaded at its first launch may wait there for all that runs on the GPU. Requests of kernels that
/// run need the driver meanwhile, so the kernel is loaded here.
template <class Kernel>
int load_gemm_kernel() {
  cudaFuncAttributes attributes{};
  check(cudaFuncGetAttributes(&attributes, &fused_gemm<Kernel>), "loading a GEMM");
  check(cudaFuncSetAttribute(&fused_gemm<Kernel>, cudaFuncAttributeMaxDynamicSharedMemorySize,
                             sizeof(typename Kernel::Storage)),
        "loading a GEMM");
  return 1;
}

/// Returns the number of clusters with work.
template <class Table>
int busy_clusters(const Table& table, int clusters) {
  if constexpr (Table::kIsStreamK)
    if (table.stream_k.whole < table.units) return clusters;
  return min(clusters, table.units);
}

/// Launches clusters of `cluster` blocks, as many as there are SMs and work for.
template <class Kernel>
void launch_gemm_kernel(const GemmLaunch& launch, const typename Kernel::Params& params, int cluster) {
  cudaLaunchConfig_t config{};
  config.gridDim = dim3(static_cast<unsigned>(busy_clusters(params.table, max(launch.sms / cluster, 1)) * cluster));
  config.blockDim = dim3(Kernel::kThreads);
  config.dynamicSmemBytes = sizeof(typename Kernel::Storage);
  config.stream = launch.stream;
  cudaLaunchAttribute attributes[2]{};
  attributes[0].id = cudaLaunchAttributeClusterDimension;
  attributes[0].val.clusterDim = {static_cast<unsigned>(cluster), 1, 1};
  attributes[1].id = cudaLaunchAttributeProgrammaticStreamSerialization;
  attributes[1].val.programmaticStreamSerializationAllowed = 1;
  config.attrs = attributes;
  config.numAttrs = launch.early ? 2 : 1;
  check(cudaLaunchKernelEx(&config, &fused_gemm<Kernel>, params), "gemm");
}

}  // namespace tandem::cuda
