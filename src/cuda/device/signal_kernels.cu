#include "cuda/device/comparison.cuh"
#include "cuda/device/signal_kernels.h"
#include "cuda/driver/error.h"
#include "cuda/driver/launch.h"
#include "tandem/impl/cuda/watchdog.cuh"

namespace tandem::cuda {

namespace {

__global__ void __launch_bounds__(32) write_kernel(Signal* word, Epoch value) {
  if (threadIdx.x == 0) store_release(&word->value, value);
}

__global__ void __launch_bounds__(32)
    wait_kernel(const __grid_constant__ Context context, const Signal* word, Epoch value) {
  if (threadIdx.x != 0) return;
  Watchdog watchdog(context);
  for (Epoch found; (found = load_acquire(&word->value)) < value;)
    if (watchdog.is_over(word, value, found)) return;
}

__global__ void __launch_bounds__(32)
    compare_kernel(const __grid_constant__ Context context, const __grid_constant__ Comparison own) {
  compare_calls(context, own, [](Signal* there, Epoch count, Epoch sent, int) {
    store_relaxed(&there[1].value, count);
    store_release(&there[0].value, sent);
  });
}

__global__ void __launch_bounds__(32) empty_kernel() {}

}  // namespace

void launch_nothing(cudaStream_t stream) { launch_kernel("cudaStreamCreate", &empty_kernel, dim3(1), 32, stream); }

void launch_write(cudaStream_t stream, Signal* word, Epoch value) {
  launch_kernel("write_signal", &write_kernel, dim3(1), 32, stream, word, value);
}

void launch_wait(cudaStream_t stream, const Context& context, const Signal* word, Epoch value) {
  launch_kernel("wait_signal", &wait_kernel, dim3(1), 32, stream, context, word, value);
}

void launch_comparison(cudaStream_t stream, const Context& context, const Comparison& comparison) {
  launch_kernel("agreement", &compare_kernel, dim3(1), 32, stream, context, comparison);
}

void load_signal_kernels() {
  cudaFuncAttributes attributes{};
  check(cudaFuncGetAttributes(&attributes, &write_kernel), "loading a kernel");
  check(cudaFuncGetAttributes(&attributes, &wait_kernel), "loading a kernel");
  check(cudaFuncGetAttributes(&attributes, &compare_kernel), "loading a kernel");
  check(cudaFuncGetAttributes(&attributes, &empty_kernel), "loading a kernel");
}

}  // namespace tandem::cuda
