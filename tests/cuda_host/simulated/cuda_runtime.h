#pragma once
/// The names of CUDA's runtime that the host code under test uses, so that it can be compiled and run without CUDA:
/// every call counts, and fails where the test says so. In place of the real header, for these tests alone.

#include <cstddef>

using cudaStream_t = struct CUstream_st*;

enum cudaError_t { cudaSuccess = 0, cudaErrorInvalidValue = 1, cudaErrorMemoryAllocation = 2 };
enum cudaStreamCaptureMode { cudaStreamCaptureModeRelaxed = 2 };
inline constexpr unsigned cudaStreamNonBlocking = 1;

struct dim3 {
  dim3(unsigned x_ = 1, unsigned y_ = 1, unsigned z_ = 1)
      : x(x_), y(y_), z(z_) {}  // NOLINT(google-explicit-constructor)
  unsigned x, y, z;
};

struct cudaLaunchConfig_t {
  dim3 gridDim, blockDim;
  std::size_t dynamicSmemBytes;
  cudaStream_t stream;
};

const char* cudaGetErrorString(cudaError_t code);
cudaError_t cudaGetDevice(int* device);
cudaError_t cudaSetDevice(int device);
cudaError_t cudaGetLastError();
cudaError_t cudaStreamCreateWithFlags(cudaStream_t* stream, unsigned flags);
cudaError_t cudaStreamSynchronize(cudaStream_t stream);
cudaError_t cudaStreamDestroy(cudaStream_t stream);
cudaError_t cudaMallocAsync(void** memory, std::size_t bytes, cudaStream_t stream);
cudaError_t cudaFree(void* memory);
cudaError_t cudaThreadExchangeStreamCaptureMode(cudaStreamCaptureMode* mode);

namespace tandem::test {

/// What the simulated GPU does, and what it was asked.
struct Gpu {
  cudaError_t allocates = cudaSuccess;    ///< what cudaMallocAsync gives
  cudaError_t launches = cudaSuccess;     ///< what cudaLaunchKernelEx gives
  cudaError_t left_behind = cudaSuccess;  ///< cudaGetLastError's: of a call some time before
  int allocations = 0;                    ///< asked for
  int memories = 0;                       ///< allocated and not freed
  cudaLaunchConfig_t launched{};          ///< the last one
};
Gpu& gpu();

}  // namespace tandem::test

template <class... Expected, class... Given>
cudaError_t cudaLaunchKernelEx(const cudaLaunchConfig_t* config, void (*kernel)(Expected...), Given&&... arguments) {
  tandem::test::Gpu& gpu = tandem::test::gpu();
  gpu.launched = *config;
  if (gpu.launches == cudaSuccess)
    kernel(arguments...);
  else
    gpu.left_behind = gpu.launches;
  return gpu.launches;
}
