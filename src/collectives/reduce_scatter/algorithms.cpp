#include "collectives/plan/plan.h"
#include "collectives/plan/reduce_copies_plan.h"
#include "collectives/reduce_scatter/ll.h"
#include "collectives/reduce_scatter/pull.h"
#include "collectives/reduce_scatter/push.h"
#include "collectives/reduce_scatter/ring.h"
#include "collectives/reduce_scatter/stream.h"
#include "collectives/reduce_scatter/two_level.h"

namespace tandem::kernels {

namespace {

constexpr Collective kThis = Collective::kReduceScatter;

}  // namespace

std::span<const Algorithm> reduce_scatter_algorithms() {
  using enum PeerAccess;
  static const Algorithm algorithms[] = {
      {{kThis, "pull", "each PE reads its shard of all PEs' inputs and sums them", true, false, kInput},
       make_plan<kThis, ReduceScatterPull>},
      {{kThis, "push", "each PE sends every peer its shard; the owner sums", false, false, kNeither},
       make_plan<kThis, ReduceScatterPush>},
      {{kThis, "copy_engine", "copy engines bring each PE its shard of all inputs, which kernels sum meanwhile", true,
        true, kNeither},
       make_copied_reduce<kThis>},
      {{kThis, "ll", "as push, with packets that are their own signals: small sizes", true, false, kNeither},
       make_plan<kThis, ReduceScatterLL>},
      {{kThis, "ll128", "as push, with lines of packets: middle sizes", true, false, kNeither},
       make_plan<kThis, ReduceScatterLL128>},
      {{kThis, "ring", "shards go round a ring, each PE adding its values", false, false, kNeither},
       make_plan<kThis, ReduceScatterRing>},
      {{kThis, "two_level", "sums within the node, then along the rail between nodes", false, false, kInput},
       make_plan<kThis, ReduceScatterTwoLevel>},
      {{kThis, "stream", "as push, through slots, for memory that peers do not reach: large sizes", true, false,
        kNeither},
       make_plan<kThis, ReduceScatterStream>,
       narrow_unfit<ReduceScatterStream>},
  };
  return algorithms;
}

}  // namespace tandem::kernels
