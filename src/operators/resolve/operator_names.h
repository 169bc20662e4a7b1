#pragma once
/// The tile orders of operators by their names.

#include "tandem/operators.h"

namespace tandem::ops {

/// The source (or target) of tiles decides: across nodes the own node is near; a mesh serves all peers at once.
TileOrder default_order(Operator op, const World& world);

/// Its name among the operator's orders.
std::string order_name(Operator op, TileOrder order);

/// Throws InvalidArgument that lists the operator's orders.
TileOrder parse_order(Operator op, const std::string& text);

}  // namespace tandem::ops
