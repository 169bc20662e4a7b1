#pragma once
/// Ending processes together with whatever they started, in process groups and sessions of their own too.

namespace tandem::cli {

/// From now on descendants whose parent ends become children of this process.
void adopt_descendants();

/// Ends all descendants of this process, which has called adopt_descendants(), and waits for their end.
void end_descendants();

}  // namespace tandem::cli
