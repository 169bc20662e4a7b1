#include "collectives/broadcast/chain.h"
#include "collectives/broadcast/copies_plan.h"
#include "collectives/broadcast/direct.h"
#include "collectives/broadcast/ll.h"
#include "collectives/broadcast/pull.h"
#include "collectives/broadcast/scatter_all_gather.h"
#include "collectives/broadcast/scatter_ll.h"
#include "collectives/broadcast/staged.h"
#include "collectives/broadcast/stream.h"
#include "collectives/broadcast/tree.h"
#include "collectives/plan/plan.h"

namespace tandem::kernels {

std::span<const Algorithm> broadcast_algorithms() {
  constexpr Collective kSelf = Collective::kBroadcast;
  using enum PeerAccess;
  static const Algorithm algorithms[] = {
      {{kSelf, "scatter_all_gather", "scatter over the other PEs, which pass their parts on, pipelined: large sizes",
        false, false, kOutput},
       make_byte_plan<kSelf, BroadcastScatterAllGather>},
      {{kSelf, "direct", "the root puts everything to every PE: small sizes", false, false, kOutput},
       make_byte_plan<kSelf, BroadcastDirect>},
      {{kSelf, "pull", "every PE reads the root's input: PEs on CPUs", true, false, kInput},
       make_byte_plan<kSelf, BroadcastPull>},
      {{kSelf, "tree", "down a binary tree in chunks", false, false, kOutput}, make_byte_plan<kSelf, BroadcastTree<2>>},
      {{kSelf, "chain", "from PE to PE in chunks: large sizes", false, false, kOutput},
       make_byte_plan<kSelf, BroadcastChain>},
      {{kSelf, "copy_engine", "as scatter_all_gather, by copy engines; no SM moves data", true, true, kOutput},
       make_broadcast_copies},
      {{kSelf, "ll", "packets that are their own signals: small sizes", true, false, kNeither},
       make_byte_plan<kSelf, BroadcastLL>},
      {{kSelf, "ll128", "lines of packets: middle sizes", true, false, kNeither},
       make_byte_plan<kSelf, BroadcastLL128>},
      {{kSelf, "scatter_ll128", "as scatter_all_gather, with lines of packets: middle sizes", true, false, kNeither},
       make_byte_plan<kSelf, BroadcastScatterLL128>},
      {{kSelf, "staged", "every PE reads the root's staging, and the root waits for none: PEs on CPUs", true, false,
        kNeither},
       make_byte_plan<kSelf, BroadcastStaged>},
      {{kSelf, "stream", "from slot to slot of the PEs, for memory that peers do not reach: large sizes", true, false,
        kNeither},
       make_byte_plan<kSelf, BroadcastStream>,
       narrow_unfit<BroadcastStream>},
  };
  return algorithms;
}

}  // namespace tandem::kernels
