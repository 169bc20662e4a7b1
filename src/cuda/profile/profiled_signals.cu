#include "cuda/driver/error.h"
#include "cuda/driver/launch.h"
#include "cuda/profile/profiled_signals.h"
#include "tandem/impl/cuda/profiler.cuh"
#include "tandem/impl/cuda/watchdog.cuh"

namespace tandem::cuda {

namespace {

__global__ void __launch_bounds__(32) profiled_write_kernel(const RecordArea area, Signal* word, Epoch value) {
  if (threadIdx.x != 0) return;
  const std::uint64_t begin = global_timer();
  const Profiler profiler(area, nullptr);
  store_release(&word->value, value);
  profiler.add(0, 0, 0, {RecordKind::kSignal, word, value, static_cast<unsigned>(SignalOp::kSet), 1}, begin);
  profiler.finish(begin, {1, 1});
}

__global__ void __launch_bounds__(32)
    profiled_wait_kernel(const RecordArea area, const __grid_constant__ Context context, const Signal* word,
                         Epoch value) {
  if (threadIdx.x != 0) return;
  const std::uint64_t begin = global_timer();
  const Profiler profiler(area, nullptr);
  Watchdog watchdog(context);
  for (Epoch found; (found = load_acquire(&word->value)) < value;)
    if (watchdog.is_over(word, value, found)) break;
  profiler.add(0, 0, 0, {RecordKind::kWait, word, value, static_cast<unsigned>(Cmp::kGe), 1}, begin);
  profiler.finish(begin, {1, 1});
}

__global__ void __launch_bounds__(32) stamp_kernel(const RecordArea area) {
  if (threadIdx.x == 0) Profiler(area, nullptr).finish(global_timer(), {0, 0});
}

}  // namespace

void launch_profiled_write(cudaStream_t stream, const RecordArea& area, Signal* word, Epoch value) {
  launch_kernel("write_signal", &profiled_write_kernel, dim3(1), 32, stream, area, word, value);
}

void launch_profiled_wait(cudaStream_t stream, const RecordArea& area, const Context& context, const Signal* word,
                          Epoch value) {
  launch_kernel("wait_signal", &profiled_wait_kernel, dim3(1), 32, stream, area, context, word, value);
}

void launch_stamp(cudaStream_t stream, const RecordArea& area) {
  launch_kernel("recording", &stamp_kernel, dim3(1), 32, stream, area);
}

void load_profiled_signals() {
  cudaFuncAttributes attributes{};
  check(cudaFuncGetAttributes(&attributes, &profiled_write_kernel), "loading a kernel");
  check(cudaFuncGetAttributes(&attributes, &profiled_wait_kernel), "loading a kernel");
  check(cudaFuncGetAttributes(&attributes, &stamp_kernel), "loading a kernel");
}

}  // namespace tandem::cuda
