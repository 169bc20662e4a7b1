#include "collectives/all_to_all/ll.h"
#include "collectives/all_to_all/push.h"
#include "collectives/all_to_all/stream.h"
#include "collectives/all_to_all/two_level.h"
#include "collectives/plan/copy_engine_plan.h"
#include "collectives/plan/plan.h"

namespace tandem::kernels {

std::span<const Algorithm> all_to_all_algorithms() {
  using enum PeerAccess;
  constexpr Collective kSelf = Collective::kAllToAll;
  static const Algorithm algorithms[] = {
      {{kSelf, "push", "every PE's SMs put each peer's bytes to it", false, false, kOutput},
       make_byte_plan<kSelf, AllToAllPush>},
      {{kSelf, "copy_engine", "copy engines write to all peers; no SM moves data", true, true, kOutput},
       make_copy_engine_push<kSelf, CopyPattern::kAllToAll>},
      {{kSelf, "two_level", "within the node, then one message along the rail to each node", false, false, kOutput},
       make_byte_plan<kSelf, AllToAllTwoLevel>},
      {{kSelf, "ll", "packets that are their own signals: small sizes", true, false, kNeither},
       make_byte_plan<kSelf, AllToAllLL>},
      {{kSelf, "ll128", "lines of packets: middle sizes", true, false, kNeither}, make_byte_plan<kSelf, AllToAllLL128>},
      {{kSelf, "stream", "through slots of all peers, for memory that they do not reach: large sizes", true, false,
        kNeither},
       make_byte_plan<kSelf, AllToAllStream>,
       narrow_unfit<AllToAllStream>},
  };
  return algorithms;
}

}  // namespace tandem::kernels
