#pragma once
/// Plans of collectives whose bytes are moved by copy engines. They use SMs for one warp before and one after the
/// copies. CollectiveOptions::blocks, if given, are used for bytes that stay on the GPU.

#include <memory>

#include "collectives/plan/collective.h"

namespace tandem::kernels {

/// The pattern of the transfers.
enum class CopyPattern {
  kAllGather,  ///< the input to every PE's output, at this PE * count
  kAllToAll,   ///< peer * count of the input to that peer's output, at this PE * count
  kRing,       ///< the input to the next PE's output
  kSwap,       ///< the input to the output of PE 2i+1 or 2i; an odd last PE keeps its own
};

/// Whether the owner of bytes writes them to its peers, or these read them (all-gather and all-to-all only).
enum class CopyDirection { kPush, kPull };

/// It runs on its own streams, which start after the present work of the caller's stream and join it. All PEs of the
/// team must be load/store reachable.
std::unique_ptr<CollectivePlan> make_copy_engine_plan(World& world, Collective collective,
                                                      const CollectiveOptions& options, const Team& team,
                                                      CopyPattern pattern, CopyDirection direction);

/// A factory for push, as Algorithm::make.
template <Collective kCollective, CopyPattern kPattern>
std::unique_ptr<CollectivePlan> make_copy_engine_push(World& world, const CollectiveOptions& options,
                                                      const Team& team) {
  return make_copy_engine_plan(world, kCollective, options, team, kPattern, CopyDirection::kPush);
}

}  // namespace tandem::kernels
