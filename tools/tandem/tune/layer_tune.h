#pragma once
/// `tandem tune` of the calls of include/tandem/layer, whose forms or blocks are a choice.

#include <string>
#include <vector>

#include "tools/tandem/tune/tune.h"
#include "tools/tandem/tune/tune_options.h"

namespace tandem::cli {

/// Returns whether all subjects are such calls. Throws InvalidArgument if only some are, and for a call with one form.
bool names_tuned_layers(const TuneOptions& arguments);

/// Returns a sweep for each subject, or none in a process that leaves the table to another one. Throws CheckFailed
/// where an element is wrong.
std::vector<Sweep> tune_layers(const TuneOptions& arguments);

}  // namespace tandem::cli
