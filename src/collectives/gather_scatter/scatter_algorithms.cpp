#include "collectives/gather_scatter/scatter_direct.h"
#include "collectives/plan/plan.h"

namespace tandem::kernels {

std::span<const Algorithm> scatter_algorithms() {
  constexpr Collective kSelf = Collective::kScatter;
  static const Algorithm algorithms[] = {
      {{kSelf, "direct", "every PE gets its bytes from the root's input", false, false, PeerAccess::kInput},
       make_byte_plan<kSelf, ScatterDirect>},
  };
  return algorithms;
}

}  // namespace tandem::kernels
