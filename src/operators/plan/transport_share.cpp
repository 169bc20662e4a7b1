#include "operators/plan/transport_share.h"

#include <algorithm>

#include "operators/plan/operator.h"
#include "tandem/error.h"

namespace tandem {

TransportMemory::TransportMemory(World& world) {
  detail::NotedAllocations allocations = world.note_allocations();
  released_ = world.heap().signals(world.num_pes(), "shared memory released");
  acquired_ = world.heap().epochs(1, "shared memory acquired");
  last_ = world.heap().allocate_local<Epoch>(2, "shared memory last runs");
  runs_ = world.heap().allocate_local<Epoch>(1, "shared memory runs");
  memory_ = allocations.take();
}

Size TransportMemory::bytes() const {
  Size bytes = 0;
  for (const auto& side : sides_)
    for (const auto& buffer : side) bytes += buffer->bytes;
  return bytes;
}

}  // namespace tandem

namespace tandem::ops {

void TransportShare::require_of(World& world, const TransportMemory& memory) {
  if (world.bytes_from(memory.last_).value_or(0) == 0)
    throw InvalidArgument("memory: that of another world given, allowed is TransportMemory of the plan's own world");
}

Symm<std::byte> TransportShare::take(World& world, Size bytes) {
  if (bytes == 0) return {};
  auto& buffers = memory_->sides_[static_cast<std::size_t>(side_)];
  std::shared_ptr<TransportMemory::Buffer> best;
  for (const auto& buffer : buffers) {
    const bool is_taken = std::find(taken_.begin(), taken_.end(), buffer) != taken_.end();
    if (!is_taken && buffer->bytes >= bytes && (best == nullptr || buffer->bytes < best->bytes)) best = buffer;
  }
  if (best == nullptr) {
    best = std::make_shared<TransportMemory::Buffer>();
    detail::NotedAllocations allocations = world.note_allocations();  // the plan does not own it
    best->bytes = bytes;
    best->place = world.heap().allocate<std::byte>(bytes, "shared transport memory");
    best->memory = allocations.take();
    buffers.push_back(best);
  }
  taken_.push_back(best);
  return best->place;
}

GemmWorkspace TransportShare::workspace(World& world) {
  if (memory_->workspace_.sums == nullptr) {
    detail::NotedAllocations allocations = world.note_allocations();
    memory_->workspace_ = make_gemm_workspace(world);
    memory_->workspace_memory_ = allocations.take();
  }
  return memory_->workspace_;
}

AcquireBuffer::Args TransportShare::first_step(Epoch* epoch) const {
  // Plans exchange data with different peers, so that all PEs take part.
  return {memory_->released_, memory_->acquired_, memory_->last_ + side_, epoch, true};
}

}  // namespace tandem::ops
