#pragma once
/// Compiles a user's kernel a second time, with a block that records its operations. Worlds with CudaOptions::record
/// show them in their timelines. Other kernels appear with begin and end only.

#include "tandem/advanced/cuda_kernel.cuh"
#include "tandem/impl/cuda/profiled_block.cuh"

namespace tandem::cuda {

/// @cond
template <class K, int Threads>
__global__ void __launch_bounds__(Threads, tandem::detail::kBlocksPerSm<K>)
    profiled_kernel(const __grid_constant__ Context context, const __grid_constant__ typename K::Args args,
                    const __grid_constant__ RecordArea area) {
  __shared__ RecordCount count;
  using Usual = Block<Threads, typename PacketOf<K>::Type>;
  // The wait comes early, also for kernels of packets: the previous launch may still write its own records there.
  wait_for_previous_grid();
  if constexpr (!tandem::detail::kHoldsNext<K>) let_next_grid_start();
  if (context.checks_calls && *static_cast<const volatile std::uint32_t*>(context.abort) != 0) return;
  const std::uint64_t begin = global_timer();
  const Profiler profiler(area, &count);
  Profiled<Usual> block(Usual(context), profiler);
  K::run(block, args);
  __syncthreads();
  if (threadIdx.x == 0) profiler.finish(begin, block.record_count());
}

/// The recording variant of K.
template <class K, int Threads>
struct ProfiledForm {
  static void launch(const detail::DeviceLaunch& launch) {
    launch_form<K>(&profiled_kernel<K, Threads>, Threads, launch, *static_cast<const Context*>(launch.context),
                   *static_cast<const typename K::Args*>(launch.args), *static_cast<const RecordArea*>(launch.records));
  }
  static int load() { return load_form<K>(&profiled_kernel<K, Threads>, Threads); }
  static inline const detail::DeviceKernel kernel{Threads, launch, load};
};
/// @endcond

/// Adds the variant to the kernels that recording worlds load.
void add_profiled_kernel(std::string_view name, const detail::DeviceKernel* usual,
                         const detail::DeviceKernel& recorded);

/// Registers the recording variant of K. Throws InvalidArgument unless K is registered with blocks of `Threads`
/// threads. It must be called before the first world is made.
template <class K, int Threads>
void register_profiled_kernel() {
  add_profiled_kernel(type_name<K>(), detail::DeviceKernelOf<K>::kernel, ProfiledForm<K, Threads>::kernel);
}

}  // namespace tandem::cuda
