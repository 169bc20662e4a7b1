#include "collectives/plan/team_check.h"

#include <fmt/format.h>

#include <algorithm>

#include "tandem/error.h"

namespace tandem::kernels {

void check_team(const World& world, const Team& team) {
  const std::int64_t last = team.first + (std::int64_t{team.size} - 1) * team.stride;
  const std::int64_t me = team.first + std::int64_t{team.me} * team.stride;
  const bool lies_within = team.size >= 1 && std::min<std::int64_t>(team.first, last) >= 0 &&
                           std::max<std::int64_t>(team.first, last) < world.num_pes() &&
                           (team.size == 1 || team.stride != 0);
  const bool has_nodes = team.node_size >= 1 && team.size % team.node_size == 0;
  if (!lies_within || !has_nodes || team.me < -1 || team.me >= team.size || (team.me >= 0 && me != world.pe()))
    throw InvalidArgument(
        fmt::format("team: first {}, stride {}, size {}, me {}, node_size {} given on PE {}, allowed is what World "
                    "gives for {} PEs",
                    team.first, team.stride, team.size, team.me, team.node_size, world.pe(), world.num_pes()));
}

}  // namespace tandem::kernels
