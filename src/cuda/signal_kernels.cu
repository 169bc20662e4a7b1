#include "cuda/error.h"
#include "cuda/signal_kernels.h"
#include "tandem/impl/cuda/patience.cuh"

namespace tandem::cuda {

namespace {

__global__ void __launch_bounds__(32) write_kernel(Signal* word, Epoch value) {
  if (threadIdx.x == 0) store_release(&word->value, value);
}

__global__ void __launch_bounds__(32)
    wait_kernel(const __grid_constant__ Context context, const Signal* word, Epoch value) {
  if (threadIdx.x != 0) return;
  Patience patience(context);
  for (Epoch found; (found = load_acquire(&word->value)) < value;)
    if (patience.is_over(word, value, found)) return;
}

__global__ void __launch_bounds__(32) empty_kernel() {}

}  // namespace

void launch_nothing(cudaStream_t stream) {
  empty_kernel<<<1, 32, 0, stream>>>();
  check(cudaGetLastError(), "cudaStreamCreate");
}

void launch_write(cudaStream_t stream, Signal* word, Epoch value) {
  write_kernel<<<1, 32, 0, stream>>>(word, value);
  check(cudaGetLastError(), "write_signal");
}

void launch_wait(cudaStream_t stream, const Context& context, const Signal* word, Epoch value) {
  wait_kernel<<<1, 32, 0, stream>>>(context, word, value);
  check(cudaGetLastError(), "wait_signal");
}

void load_signal_kernels() {
  cudaFuncAttributes attributes{};
  check(cudaFuncGetAttributes(&attributes, &write_kernel), "loading a kernel");
  check(cudaFuncGetAttributes(&attributes, &wait_kernel), "loading a kernel");
  check(cudaFuncGetAttributes(&attributes, &empty_kernel), "loading a kernel");
}

}  // namespace tandem::cuda
