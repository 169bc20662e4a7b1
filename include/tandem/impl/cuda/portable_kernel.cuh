#pragma once
/// Compiles a portable kernel for GPUs and makes it known to host code.

#include <cuda_runtime.h>

#include <type_traits>

#include "cuda/error.h"
#include "cuda/register.h"
#include "tandem/impl/cuda/block.cuh"
#include "tandem/impl/device_kernel.h"

namespace tandem::cuda {

/// The packets that K uses, for which its fragments are laid out; void if none.
template <class K>
struct PacketOf {
  using Type = void;
};
template <class K>
requires requires { typename K::Packet; }
struct PacketOf<K> {
  using Type = typename K::Packet;
};

/// Whether K touches no memory before next_epoch, which then waits for the kernel before.
template <class K>
inline constexpr bool kEpochFirst = false;
template <class K>
requires requires { K::kEpochFirst; }
inline constexpr bool kEpochFirst<K> = K::kEpochFirst;

template <class K, int Threads>
__global__ void __launch_bounds__(Threads, 1)
    portable_kernel(const __grid_constant__ Context context, const __grid_constant__ typename K::Args args) {
  // With programmatic dependent launch: nothing is touched before what ran before is complete.
  if (!kEpochFirst<K> || context.checks_calls) {
    wait_for_previous_grid();
    let_next_grid_start();
  }
  if (context.checks_calls && *static_cast<const volatile std::uint32_t*>(context.abort) != 0) return;
  Block<Threads, typename PacketOf<K>::Type> block(context);
  K::run(block, args);
  if constexpr (kEpochFirst<K>) wait_for_previous_grid();  // on every path, so that completion is transitive
}

/// The launch of one kernel with one block size.
template <class K, int Threads>
struct Launcher {
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
    check(cudaLaunchKernelEx(&config, &portable_kernel<K, Threads>, *static_cast<const Context*>(launch.context),
                             *static_cast<const typename K::Args*>(launch.args)),
          "launch");
  }

  static int load() {
    cudaFuncAttributes attributes{};
    check(cudaFuncGetAttributes(&attributes, &portable_kernel<K, Threads>), "loading a kernel");
    int blocks = 0;
    check(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, &portable_kernel<K, Threads>, Threads, 0),
          "loading a kernel");
    return blocks;
  }
};

/// Makes K launchable with blocks of `Threads` threads.
template <class K, int Threads>
void register_kernel() {
  static const detail::DeviceKernel kernel{Threads, Launcher<K, Threads>::launch, Launcher<K, Threads>::load};
  detail::DeviceKernelOf<K>::kernel = &kernel;
  registered_kernels().push_back(&kernel);
}

}  // namespace tandem::cuda
