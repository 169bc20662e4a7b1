#pragma once
/// `tandem tune` of the calls of experts: times of their forms, stored in a cache file.

#include "tools/tandem/tune/tune_options.h"

namespace tandem::cli {

/// Returns whether all subjects are calls of experts. Throws InvalidArgument if only some are, and for options that do
/// not apply.
bool names_expert_calls(const TuneOptions& arguments);

/// Tries all forms at all sizes. Throws CheckFailed where an element is wrong.
int tune_expert_calls(const TuneOptions& arguments);

}  // namespace tandem::cli
