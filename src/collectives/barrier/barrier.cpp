#include "collectives/barrier/barrier.h"

#include <fmt/format.h>

#include "collectives/plan/team_check.h"
#include "tandem/error.h"

namespace tandem {

TeamBarrier make_team_barrier(World& world, const Team& team, int blocks) {
  kernels::check_team(world, team);
  if (blocks < 1) throw InvalidArgument(fmt::format("blocks: {} given to a barrier, at least 1 is needed", blocks));
  return {world.heap().signals(Size{blocks} * TeamBarrier::kMostRounds, "barrier words").of(team),
          world.heap().epochs(blocks, "barrier epochs")};
}

void barrier_on(Stream& stream, const TeamBarrier& barrier, const Team& team) {
  if (!barrier.words) throw InvalidArgument("barrier: none given; make_team_barrier makes one");
  stream.launch<kernels::BarrierAll>({1, 32}, barrier, team);
}

}  // namespace tandem
