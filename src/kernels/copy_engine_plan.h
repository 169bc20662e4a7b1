#pragma once
/// Plans of collectives whose bytes are moved by copy engines: no SM is used but by one warp before and one after the
/// copies.

#include <memory>

#include "kernels/collective.h"

namespace tandem::kernels {

/// Which bytes go where: PE p's output holds, at q * count, the piece of PE q that begins in q's input at ...
enum class Pieces {
  kSame,      ///< 0: all-gather
  kOnePerPe,  ///< p * count: all-to-all
};

/// Whether the owner of bytes writes them to its peers, or these read them.
enum class CopyDirection { kPush, kPull };

/// Runs on streams of its own, one for each copy engine and at most one for each peer, which begin after what the
/// caller's stream holds and are joined into it. All PEs of the team must be load/store reachable.
std::unique_ptr<CollectivePlan> make_copy_engine_plan(World& world, Collective collective,
                                                      const CollectiveOptions& options, const Team& team, Pieces pieces,
                                                      CopyDirection direction);

}  // namespace tandem::kernels
