#pragma once
/// The options of `tandem tune`.

#include "tools/tandem/options/arguments.h"

namespace tandem::cli {

struct TuneOptions : SweepOptions {
  std::string out;          ///< the table of collectives, or the cache of operators
  std::optional<int> most;  ///< configurations of an operator that GPUs try
};

/// Throws InvalidArgument for invalid values, and for options that the backend does not use.
void validate(const TuneOptions&);

}  // namespace tandem::cli
