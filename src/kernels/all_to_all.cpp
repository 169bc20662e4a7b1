#include <array>

#include "kernels/all_to_all_ll.h"
#include "kernels/all_to_all_push.h"
#include "kernels/copy_engine_plan.h"
#include "kernels/plan.h"

namespace tandem::kernels {

namespace {

constexpr Collective kSelf = Collective::kAllToAll;

std::unique_ptr<CollectivePlan> make_copy_engine(World& world, const CollectiveOptions& options, const Team& team) {
  return make_copy_engine_plan(world, kSelf, options, team, Pieces::kOnePerPe, CopyDirection::kPush);
}

}  // namespace

std::span<const Algorithm> all_to_all_algorithms() {
  static const std::array<Algorithm, 3> algorithms{{
      {{kSelf, "push", "every PE's SMs put each peer's bytes to it", false}, make_byte_plan<kSelf, AllToAllPush>},
      {{kSelf, "copy_engine", "copy engines write to all peers; no SM moves data", true}, make_copy_engine},
      {{kSelf, "ll", "packets that are their own signals: small sizes", true}, make_byte_plan<kSelf, AllToAllLL>},
  }};
  return algorithms;
}

}  // namespace tandem::kernels
