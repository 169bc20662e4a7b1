#pragma once
/// Plans whose buffers peers cannot access. Buffers that the algorithm's peers access are copied from or to symmetric
/// staging in stream order. Other buffers are used in place. A call that the staging does not hold runs in chunks. The
/// copies of a chunk run beside the kernels of its neighbours.

#include <memory>

#include "collectives/plan/collective.h"

namespace tandem::kernels {

/// The buffers of a call that are copied.
struct Staged {
  bool in = false;
  bool out = false;

  bool any() const { return in || out; }
};

/// Returns the buffers that the options declare local and that peers would access. An input that a run multiplies is
/// always copied.
Staged staged_buffers(const AlgorithmInfo& info, const CollectiveOptions& options, const Team& team);

/// Returns the approximate time of the copies of the largest call.
double copies_us(Staged staged, Collective collective, const CollectiveOptions& options, const Team& team,
                 const Machine& machine);

/// Returns the elements (as `count`) of a call that the staging holds at once. Returns max_count if nothing is copied
/// or no staging was given. Throws InvalidArgument if it holds none.
Size staged_chunk(Staged staged, Collective collective, const CollectiveOptions& options, const Team& team);

/// Returns `algorithm`'s plan, with copies if it needs any. Options are complete.
std::unique_ptr<CollectivePlan> make_with_copies(World& world, const CollectiveOptions& options, const Team& team,
                                                 const Algorithm& algorithm);

}  // namespace tandem::kernels
