#pragma once
/// Memory that plans of overlapped operators share if their runs follow each other (OperatorOptions::memory).

#include <array>
#include <memory>
#include <vector>

#include "tandem/advanced/gemm.h"
#include "tandem/impl/plan_memory.h"
#include "tandem/signal.h"
#include "tandem/symm.h"
#include "tandem/world.h"

namespace tandem {

namespace ops {
class TransportShare;
}

/// Heap memory for data in flight, which plans of overlapped operators need during a run: gathered rows, partial sums,
/// and rows on their way. Each plan takes the smallest buffers that suffice, and new ones where none do. So the plans
/// of a model together take little more than the largest of them. Not shared are signals, packets, buffers of
/// strategies for few rows, and collectives that a strategy calls.
///
/// The runs of all plans with the same memory follow each other. All PEs enqueue them in the same order, in one stream
/// or in streams that events order. Replays of graphs count as runs. Runs that overlap are a race on this memory, which
/// `tandem check` reports.
class TransportMemory {
 public:
  /// All PEs call it, and pass theirs to the same plans of this world; plans of others throw InvalidArgument. It takes
  /// a few words of the heap.
  explicit TransportMemory(World& world);

  /// Returns the bytes that plans have taken so far, on each PE, without the workspace of GEMMs. They are free again
  /// when the object and all its plans are gone.
  Size bytes() const;

 private:
  friend class ops::TransportShare;

  struct Buffer {
    Size bytes = 0;
    Symm<std::byte> place;
    detail::PlanMemory memory;
  };

  detail::PlanMemory memory_;  // of the words
  Signals released_;           // [PE]: how many runs a peer has finished, as far as it has signalled that
  Epochs acquired_;            // one word: how many this PE has started
  Epoch* last_;                // [side]: number of the last run that used its buffers
  Epoch* runs_;                // of strategies that do not count runs by themselves
  GemmWorkspace workspace_;
  detail::PlanMemory workspace_memory_;
  std::array<std::vector<std::shared_ptr<Buffer>>, 2> sides_;  // plans that alternate between two buffers use both
  int turn_ = 0;                                               // side of the next run that may choose
};

}  // namespace tandem
