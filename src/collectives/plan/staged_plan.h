#pragma once
/// Plans whose buffers peers do not reach: what the algorithm has peers touch is copied from or to symmetric staging
/// in stream order, the rest is used where it lies.

#include <memory>

#include "collectives/plan/collective.h"

namespace tandem::kernels {

/// Which buffers of a call are copied.
struct Staged {
  bool in = false;
  bool out = false;

  bool any() const { return in || out; }
};

/// Those that the options say are local and that peers would touch.
Staged staged_buffers(const AlgorithmInfo& info, const CollectiveOptions& options, const Team& team);

/// What the copies of the largest call take, about.
double copies_us(Staged staged, Collective collective, const CollectiveOptions& options, const Team& team);

/// Elements (as `count`) of a call that the staging holds at once; max_count where nothing is copied or no staging was
/// given. Throws InvalidArgument where it holds none.
Size staged_piece(Staged staged, Collective collective, const CollectiveOptions& options, const Team& team);

/// `algorithm`'s plan, with copies where it needs any. Options are complete.
std::unique_ptr<CollectivePlan> make_with_copies(World& world, const CollectiveOptions& options, const Team& team,
                                                 const Algorithm& algorithm);

}  // namespace tandem::kernels
