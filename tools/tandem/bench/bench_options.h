#pragma once
/// The options of `tandem bench`.

#include "tools/tandem/options/arguments.h"

namespace tandem::cli {

struct BenchOptions : SweepOptions {};

/// Throws InvalidArgument for invalid values, and for options that the backend does not use.
inline void validate(const BenchOptions& options) { validate_sweep(options); }

}  // namespace tandem::cli
