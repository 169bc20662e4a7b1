#pragma once
/// The options of `tandem run`.

#include "tools/tandem/options/arguments.h"

namespace tandem::cli {

struct RunOptions : Arguments {
  std::optional<std::string> bytes;  ///< 1M by default
  bool explain = false;              ///< prints every option with its source
  std::string trace, report, svg;    ///< files of the timelines; empty: none
};

/// Throws InvalidArgument for invalid values, and for options that the backend does not use.
void validate(const RunOptions&);

/// Returns the size that --bytes gives.
Size bytes_of(const RunOptions&);

}  // namespace tandem::cli
