#pragma once
/// A team: PEs `first`, `first + stride`, ... of the world, numbered 0, 1, ... within the team.
///
/// The form is strided, as with OpenSHMEM 1.5's `shmem_team_split_strided` (section 9.4). The world, a node and a rail
/// are teams of this form.

#include "tandem/impl/config.h"

namespace tandem {

/// The members of a team and the place of this PE among them.
struct Team {
  int first = 0;   ///< world number of member 0
  int stride = 1;  ///< world numbers from one member to the next
  int size = 1;    ///< number of members
  /// This PE's number within the team, or -1 if it is not a member.
  int me = 0;
  /// The number of consecutive members that share a node (load/store reachable from each other). It divides `size`.
  int node_size = 1;

  /// Returns the world number of member `pe`.
  TANDEM_DEVICE constexpr int world_pe(int pe) const { return first + pe * stride; }
  /// Returns the number of nodes on which the members are.
  TANDEM_DEVICE constexpr int nodes() const { return size / node_size; }
  /// Returns whether all members reach each other by loads and stores.
  TANDEM_DEVICE constexpr bool one_node() const { return size == node_size; }
};

}  // namespace tandem
