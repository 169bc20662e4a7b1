#pragma once
/// Host loops over several threads: filling and checking data.

#include <functional>

#include "tandem/range.h"

namespace tandem::cli {

/// Calls `body` for consecutive pieces of [0, count), `piece` long (the last may be shorter), on as many threads as the
/// processor has. Which thread takes which piece is open: bodies write to places of their own. Rethrows the first error
/// of a body.
void for_pieces(Size count, Size piece, const std::function<void(Range)>& body);

}  // namespace tandem::cli
