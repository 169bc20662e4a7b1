#pragma once
/// Ends processes together with all processes that they started, also in other process groups and sessions.

namespace tandem::cli {

/// From now on descendants whose parent ends become children of this process.
void adopt_descendants();

/// Ends all descendants of this process, which has called adopt_descendants(), and waits for them.
void end_descendants();

}  // namespace tandem::cli
