#include "collectives/gather_scatter/gather_direct.h"
#include "collectives/plan/plan.h"

namespace tandem::kernels {

std::span<const Algorithm> gather_algorithms() {
  constexpr Collective kSelf = Collective::kGather;
  static const Algorithm algorithms[] = {
      {{kSelf, "direct", "every PE puts its bytes into the root's output", false, false, PeerAccess::kOutput},
       make_byte_plan<kSelf, GatherDirect>},
  };
  return algorithms;
}

}  // namespace tandem::kernels
