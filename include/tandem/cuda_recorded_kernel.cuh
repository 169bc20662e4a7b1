#pragma once
/// Compiles a kernel a second time, with the block that records.

#include "cuda/recorded_kernels.h"
#include "cuda/register.cuh"
#include "tandem/impl/cuda/recorded_block.cuh"

namespace tandem::cuda {

template <class K, int Threads>
__global__ void __launch_bounds__(Threads, 1)
    recorded_kernel(const __grid_constant__ Context context, const __grid_constant__ typename K::Args args,
                    const __grid_constant__ RecordArea area) {
  __shared__ unsigned count;
  using Usual = Block<Threads, typename PacketOf<K>::Type>;
  // Not later, as kernels of packets do it: records lie where the launch before may still write its own.
  wait_for_previous_grid();
  let_next_grid_start();
  if (context.checks_calls && *static_cast<const volatile std::uint32_t*>(context.abort) != 0) return;
  const std::uint64_t begin = global_timer();
  Recorder recorder(area, &count);
  if (threadIdx.x == 0) recorder.lend();  // warps and roles count together
  __syncthreads();
  Recorded<Usual> block(Usual(context), recorder);
  K::run(block, args);
  __syncthreads();
  if (threadIdx.x != 0) return;
  recorder.take_back();
  recorder.finish(begin);
}

template <class K, int Threads>
struct RecordedLauncher {
  static void launch(const detail::DeviceLaunch& launch) {
    cudaLaunchConfig_t config{};
    config.gridDim = dim3(static_cast<unsigned>(launch.blocks));
    config.blockDim = dim3(Threads);
    config.stream = static_cast<cudaStream_t>(launch.stream);
    cudaLaunchAttribute programmatic{};
    programmatic.id = cudaLaunchAttributeProgrammaticStreamSerialization;
    programmatic.val.programmaticStreamSerializationAllowed = 1;
    config.attrs = &programmatic;
    config.numAttrs = launch.early ? 1 : 0;
    check(cudaLaunchKernelEx(&config, &recorded_kernel<K, Threads>, *static_cast<const Context*>(launch.context),
                             *static_cast<const typename K::Args*>(launch.args),
                             *static_cast<const RecordArea*>(launch.records)),
          "launch");
  }
  static int load() {
    cudaFuncAttributes attributes{};
    check(cudaFuncGetAttributes(&attributes, &recorded_kernel<K, Threads>), "loading a kernel");
    int blocks = 0;
    check(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, &recorded_kernel<K, Threads>, Threads, 0),
          "loading a kernel");
    return blocks;
  }
};

/// Makes K, registered before with blocks of `Threads` threads, a kernel whose operations can be recorded.
template <class K, int Threads>
void register_recorded_kernel() {
  static const detail::DeviceKernel kernel{Threads, RecordedLauncher<K, Threads>::launch,
                                           RecordedLauncher<K, Threads>::load};
  recorded_kernels()[detail::DeviceKernelOf<K>::kernel] = &kernel;
}

}  // namespace tandem::cuda
