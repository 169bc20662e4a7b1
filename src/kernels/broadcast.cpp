#include <array>

#include "kernels/broadcast_direct.h"
#include "kernels/broadcast_scatter_all_gather.h"
#include "kernels/broadcast_tree.h"
#include "kernels/plan.h"

namespace tandem::kernels {

std::span<const Algorithm> broadcast_algorithms() {
  constexpr Collective kSelf = Collective::kBroadcast;
  static const std::array<Algorithm, 4> algorithms{{
      {{kSelf, "scatter_all_gather", "scatter over the other PEs, which pass their parts on, pipelined: large sizes",
        false},
       make_byte_plan<kSelf, BroadcastScatterAllGather>},
      {{kSelf, "direct", "the root puts everything to every PE: small sizes", false},
       make_byte_plan<kSelf, BroadcastDirect>},
      {{kSelf, "tree", "down a binary tree in chunks", false}, make_byte_plan<kSelf, BroadcastTree<2>>},
      {{kSelf, "chain", "from PE to PE in chunks: large sizes between nodes", false},
       make_byte_plan<kSelf, BroadcastTree<1>>},
  }};
  return algorithms;
}

}  // namespace tandem::kernels
