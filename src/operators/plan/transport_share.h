#pragma once
/// The part of one plan, or of one half of plans that alternate, in memory that plans share (TransportMemory).
///
/// Each run counts, and peers release all earlier runs of all plans at once. A run waits until all PEs have released
/// the last run that used its side. So a plan finds its buffers as if they were its own, whichever plan used them
/// before.

#include <memory>
#include <vector>

#include "operators/plan/acquire_buffer.h"
#include "tandem/advanced/transport_memory.h"

namespace tandem::ops {

class TransportShare {
 public:
  /// Throws InvalidArgument if the memory belongs to another world.
  static void require_of(World& world, const TransportMemory& memory);

  /// `side`: 0 or 1. Halves of plans that alternate have different ones.
  TransportShare(std::shared_ptr<TransportMemory> memory, int side) : memory_(std::move(memory)), side_(side) {}

  /// Returns a buffer that this share has not taken yet. Collective where a new one is made.
  Symm<std::byte> take(World& world, Size bytes);
  /// Returns the workspace of all GEMMs of all plans. Collective where it is made.
  GemmWorkspace workspace(World& world);
  /// The first step of a run; `epoch` counts the plan's runs.
  AcquireBuffer::Args first_step(Epoch* epoch) const;
  /// Enqueues that step for a strategy that counts its runs by itself.
  void acquire(Stream& main) const { main.launch<AcquireBuffer>(kOneWarp, first_step(memory_->runs_)); }
  /// Returns the side of the next run of plans that alternate.
  std::size_t next_side() const { return static_cast<std::size_t>(memory_->turn_ = 1 - memory_->turn_); }

 private:
  std::shared_ptr<TransportMemory> memory_;
  int side_;
  std::vector<std::shared_ptr<TransportMemory::Buffer>> taken_;
};

}  // namespace tandem::ops
