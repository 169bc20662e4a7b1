#pragma once

namespace tandem::bootstrap {

/// Seconds after which a test gives up to wait for a member that would never join.
inline constexpr double kTimeout = 600;

}  // namespace tandem::bootstrap
