#pragma once
/// The __global__ function around a portable kernel, and its launch.

#include <cuda_runtime.h>

#include <string>
#include <string_view>

#include "tandem/error.h"
#include "tandem/impl/cuda/block.cuh"
#include "tandem/impl/device_kernel.h"
#include "tandem/impl/type_name.h"

namespace tandem::cuda {

/// The packet type of K, which determines the layout of its fragments; void if none.
template <class K>
struct PacketOf {
  using Type = void;
};
template <class K>
requires requires { typename K::Packet; }
struct PacketOf<K> {
  using Type = typename K::Packet;
};

template <class K, int Threads>
__global__ void __launch_bounds__(Threads, tandem::detail::kBlocksPerSm<K>)
    portable_kernel(const __grid_constant__ Context context, const __grid_constant__ typename K::Args args) {
  // With programmatic dependent launch nothing may be accessed before the previous kernel is complete.
  if (!tandem::detail::kEpochFirst<K> || context.checks_calls) {
    wait_for_previous_grid();
    if constexpr (!tandem::detail::kHoldsNext<K>) let_next_grid_start();
  }
  if (context.checks_calls && *static_cast<const volatile std::uint32_t*>(context.abort) != 0) return;
  Block<Threads, typename PacketOf<K>::Type> block(context);
  K::run(block, args);
  if constexpr (tandem::detail::kEpochFirst<K>)
    wait_for_previous_grid();  // on every path, so that completion is transitive
}

/// Throws RuntimeFailure "what kernel: CUDA's own text" unless the code is success.
inline void check_kernel(cudaError_t code, const char* what, std::string_view kernel) {
  if (code != cudaSuccess)
    throw RuntimeFailure(std::string(what) + " " + std::string(kernel) + ": " + cudaGetErrorString(code));
}

/// Launches `kernel`, a variant of the portable kernel K, with these parameters.
template <class K, class... Parameters>
void launch_form(void (*kernel)(Parameters...), int threads, const detail::DeviceLaunch& launch,
                 const Parameters&... parameters) {
  cudaLaunchConfig_t config{};
  config.gridDim = dim3(static_cast<unsigned>(launch.blocks));
  config.blockDim = dim3(static_cast<unsigned>(threads));
  config.stream = static_cast<cudaStream_t>(launch.stream);
  cudaLaunchAttribute programmatic{};
  programmatic.id = cudaLaunchAttributeProgrammaticStreamSerialization;
  programmatic.val.programmaticStreamSerializationAllowed = 1;
  config.attrs = &programmatic;
  config.numAttrs = launch.early ? 1 : 0;
  check_kernel(cudaLaunchKernelEx(&config, kernel, parameters...), "launch of", type_name<K>());
}

/// Loads a variant of K on the current device. Returns the number of its blocks that fit one SM.
template <class K, class... Parameters>
int load_form(void (*kernel)(Parameters...), int threads) {
  cudaFuncAttributes attributes{};
  check_kernel(cudaFuncGetAttributes(&attributes, kernel), "loading", type_name<K>());
  int blocks = 0;
  check_kernel(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, kernel, threads, 0), "loading", type_name<K>());
  return blocks;
}

/// The variant of K that does not record.
template <class K, int Threads>
struct UsualForm {
  static void launch(const detail::DeviceLaunch& launch) {
    launch_form<K>(&portable_kernel<K, Threads>, Threads, launch, *static_cast<const Context*>(launch.context),
                   *static_cast<const typename K::Args*>(launch.args));
  }
  static int load() { return load_form<K>(&portable_kernel<K, Threads>, Threads); }
  static inline const detail::DeviceKernel kernel{Threads, launch, load};
};

}  // namespace tandem::cuda
