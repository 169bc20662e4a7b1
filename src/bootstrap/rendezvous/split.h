#pragma once
/// New worlds out of the processes of one that is there.

#include <optional>

#include "bootstrap/rendezvous/session.h"
#include "tandem/advanced/placement.h"

namespace tandem::bootstrap {

/// The processes of `session` with the same `color` get an id in common, and numbers in the order of `key`, then of
/// their PEs, as MPI_Comm_split numbers them (MPI 4.1, section 7.4.2). Nothing where the color is negative. Collective
/// over the session. The new id's secret is derived from the session's and never sent; where one of them cannot open a
/// rendezvous, all throw.
std::optional<Placement> split(Session& session, int color, int key);

}  // namespace tandem::bootstrap
