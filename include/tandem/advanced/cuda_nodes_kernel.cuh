#pragma once
/// Compiles a user's kernel a second time, for worlds of several nodes: its block sends requests to PEs of other nodes.

#include "tandem/advanced/cuda_kernel.cuh"
#include "tandem/impl/cuda/mail/nodes_block.cuh"

namespace tandem::cuda {

/// @cond
template <class K, int Threads>
__global__ void __launch_bounds__(Threads, tandem::detail::kBlocksPerSm<K>)
    nodes_kernel(const __grid_constant__ Context context, const __grid_constant__ typename K::Args args,
                 const __grid_constant__ MailLink mail) {
  using Usual = Block<Threads, typename PacketOf<K>::Type>;
  wait_for_previous_grid();
  if constexpr (!tandem::detail::kHoldsNext<K>) let_next_grid_start();
  if (context.checks_calls && *static_cast<const volatile std::uint32_t*>(context.abort) != 0) return;
  BetweenNodes<Usual> block(Usual(context), mail);
  K::run(block, args);
}

/// The variant of K for worlds of several nodes.
template <class K, int Threads>
struct NodesForm {
  static void launch(const detail::DeviceLaunch& launch) {
    launch_form<K>(&nodes_kernel<K, Threads>, Threads, launch, *static_cast<const Context*>(launch.context),
                   *static_cast<const typename K::Args*>(launch.args), *static_cast<const MailLink*>(launch.mail));
  }
  static int load() { return load_form<K>(&nodes_kernel<K, Threads>, Threads); }
  static inline const detail::DeviceKernel kernel{Threads, launch, load};
};
/// @endcond

/// Adds the variant `form` of a registered kernel.
void add_nodes_kernel(std::string_view name, const detail::DeviceKernel* usual, const detail::DeviceKernel* form);

/// Registers the variant of K for worlds of several nodes, which refuse to launch a kernel without one. Throws
/// InvalidArgument unless K is registered with blocks of `Threads` threads. It must be called before the first world is
/// made.
template <class K, int Threads>
void register_nodes_kernel() {
  add_nodes_kernel(type_name<K>(), detail::DeviceKernelOf<K>::kernel, &NodesForm<K, Threads>::kernel);
}

/// Declares that K, which is registered, addresses no PE of another node. Its usual form then runs in every world.
template <class K>
void register_near_kernel() {
  add_nodes_kernel(type_name<K>(), detail::DeviceKernelOf<K>::kernel, detail::DeviceKernelOf<K>::kernel);
}

}  // namespace tandem::cuda
