#include "collectives/all_gather/ll.h"
#include "collectives/all_gather/push.h"
#include "collectives/all_gather/ring.h"
#include "collectives/all_gather/stream.h"
#include "collectives/all_gather/two_level.h"
#include "collectives/all_gather/two_level_ll.h"
#include "collectives/plan/copy_engine_plan.h"
#include "collectives/plan/plan.h"

namespace tandem::kernels {

namespace {

std::unique_ptr<CollectivePlan> make_copy_engine_pull(World& world, const CollectiveOptions& options,
                                                      const Team& team) {
  return make_copy_engine_plan(world, Collective::kAllGather, options, team, CopyPattern::kAllGather,
                               CopyDirection::kPull);
}

}  // namespace

std::span<const Algorithm> all_gather_algorithms() {
  using enum PeerAccess;
  constexpr Collective kSelf = Collective::kAllGather;
  static const Algorithm algorithms[] = {
      {{kSelf, "push", "every PE's SMs put its bytes to all peers", false, false, kOutput},
       make_byte_plan<kSelf, AllGatherPush>},
      {{kSelf, "copy_engine_push", "copy engines write to all peers; no SM moves data", true, true, kOutput},
       make_copy_engine_push<kSelf, CopyPattern::kAllGather>},
      // Peers do not access the output. In an in-place call their inputs lie there, though, so a PE has to know where
      // it is.
      {{kSelf, "copy_engine_pull", "copy engines read from all peers; no SM moves data", true, true, kBoth},
       make_copy_engine_pull},
      {{kSelf, "two_level", "between nodes to the PEs of the same index, then within the node", false, false, kOutput},
       make_byte_plan<kSelf, AllGatherTwoLevel>},
      {{kSelf, "ring", "n-1 steps round the PEs, neighbours only", false, false, kOutput},
       make_byte_plan<kSelf, AllGatherRing>},
      {{kSelf, "ll", "packets that are their own signals: small sizes", true, false, kNeither},
       make_byte_plan<kSelf, AllGatherLL>},
      {{kSelf, "ll128", "lines of packets: middle sizes", true, false, kNeither},
       make_byte_plan<kSelf, AllGatherLL128>},
      {{kSelf, "two_level_ll", "packets between nodes, forwarded within the node unopened: small sizes", false, false,
        kNeither},
       make_byte_plan<kSelf, AllGatherTwoLevelLL>},
      {{kSelf, "stream", "through slots of all peers, for memory that they do not reach: large sizes", true, false,
        kNeither},
       make_byte_plan<kSelf, AllGatherStream>,
       narrow_unfit<AllGatherStream>},
  };
  return algorithms;
}

}  // namespace tandem::kernels
