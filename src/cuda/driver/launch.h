#pragma once
/// Launches of the backend's own small kernels.

#include "base/cuda_names.h"
#include "cuda/driver/error.h"

namespace tandem::cuda {

/// Throws RuntimeFailure "what: CUDA's own text" if this launch fails. (kernel<<<>>> returns no code. After it
/// cudaGetLastError() may return an old error of the program.)
template <class... Parameters, class... Arguments>
void launch_kernel(const char* what, void (*kernel)(Parameters...), dim3 blocks, unsigned threads, cudaStream_t stream,
                   const Arguments&... arguments) {
  cudaLaunchConfig_t config{};
  config.gridDim = blocks;
  config.blockDim = dim3(threads);
  config.stream = stream;
  check(cudaLaunchKernelEx(&config, kernel, arguments...), what);
}

}  // namespace tandem::cuda
