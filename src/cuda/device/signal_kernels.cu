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

/// Reports calls that differ. If another PE reported before, later work does nothing, and this report must at least
/// state that it was ended.
__device__ void disagree(const Context& context, std::uint32_t why, int other, const void* word, Epoch expected,
                         Epoch found) {
  abort_waits(context, why, other, word, expected, found);
  *static_cast<volatile std::uint32_t*>(&context.report->ended_by) =
      *static_cast<volatile std::uint32_t*>(context.abort) & ~kEndIsReported;
}

/// Two slots by parity suffice: no PE starts call e + 2 before all PEs have ended the comparison of call e + 1, and so
/// that of e.
__global__ void __launch_bounds__(32)
    compare_kernel(const __grid_constant__ Context context, const __grid_constant__ Comparison own) {
  const Epoch call = load_relaxed(own.calls) + 1;
  __syncwarp();
  const int n = context.team.size;
  const Signals slot = own.words + 2 * n * static_cast<Size>(call % 2);
  const Epoch sent = signal_value_of(call, own.signature);
  for (int i = static_cast<int>(threadIdx.x); i < n; i += 32) {
    Signal* const there = (slot + Size{2} * context.team.me).on(i);
    store_relaxed(&there[1].value, own.count);
    store_release(&there[0].value, sent);
  }
  for (int i = static_cast<int>(threadIdx.x); i < n; i += 32) {
    const Signal* const here = slot.local() + Size{2} * i;
    Watchdog watchdog(context);
    Epoch found;
    bool is_over = false;
    while (!is_over && !is_of_call(found = load_acquire(&here[0].value), call))
      is_over = watchdog.is_over(here, sent, found);
    if (is_over) continue;
    const Epoch count = load_relaxed(&here[1].value);
    if (found != sent)
      disagree(context, kOtherCalls, i, here, sent, found);
    else if (count != own.count)
      disagree(context, kCallsOfOtherCounts, i, here, own.count, count);
  }
  __syncwarp();
  if (threadIdx.x == 0) store_relaxed(own.calls, call);
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
