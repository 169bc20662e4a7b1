#include "tandem/world.h"

#include <fmt/format.h>

#include "tandem/error.h"

namespace tandem {

detail::PlanMemory::~PlanMemory() {
  const std::shared_ptr<HeapOwner*> owner = owner_.lock();
  if (owner == nullptr) return;
  for (const auto& [memory, is_symmetric] : buffers_) {
    try {
      is_symmetric ? (*owner)->release_symmetric(memory) : (*owner)->free_local(memory);
    } catch (const Error&) {
      // The buffer has been freed already.
    }
  }
}

Symm<std::byte> SymmetricHeap::allocate_bytes(Size count, Size element_bytes, bool is_control,
                                              const std::string& name) {
  void* const on_pe0 =
      backend_->allocate_symmetric(detail::bytes_of(count, element_bytes), name, element_bytes, is_control);
  backend_->note(on_pe0, true);
  return {static_cast<std::byte*>(on_pe0), backend_->stride(), backend_->team().me};
}

void* SymmetricHeap::allocate_local_bytes(Size count, Size element_bytes, bool is_control, const std::string& name) {
  void* const memory =
      backend_->allocate_local(detail::bytes_of(count, element_bytes), name, element_bytes, is_control);
  backend_->note(memory, false);
  return memory;
}

void World::check_launch(const detail::KernelType& kernel, Grid grid) const {
  backend_->check_launch({&kernel, grid, team(), *kernel.device});
}

Team World::node_team() const {
  const Team world = team();
  const int first = world.me / world.node_size * world.node_size;
  return {first, 1, world.node_size, world.me - first, world.node_size};
}

Team World::rail_team() const {
  const Team world = team();
  const int local = world.me % world.node_size;
  return {local, world.node_size, world.nodes(), world.me / world.node_size, 1};
}

Team World::split_strided(int first, int stride, int size) const {
  const Team world = team();
  if (first < 0 || stride < 1 || size < 1 || first + (size - 1) * Size{stride} >= world.size)
    throw InvalidArgument(fmt::format("split_strided: first {}, stride {}, size {} does not lie within 0 to {}", first,
                                      stride, size, world.size - 1));
  const int offset = world.me - first;
  const bool member = offset >= 0 && offset % stride == 0 && offset / stride < size;
  // Members that share a node are consecutive. If nodes have different numbers of members, no member may use loads and
  // stores.
  int node_size = 1;
  if (first / world.node_size == (first + (size - 1) * stride) / world.node_size)
    node_size = size;
  else if (world.node_size % stride == 0 && first % world.node_size < stride && size % (world.node_size / stride) == 0)
    node_size = world.node_size / stride;
  return {first, stride, size, member ? offset / stride : -1, node_size};
}

}  // namespace tandem
