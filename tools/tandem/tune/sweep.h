#pragma once
/// The sizes of a sweep.

#include <vector>

#include "tools/tandem/options/arguments.h"

namespace tandem::cli {

/// first, first * factor, ... up to last; zero comes alone, before the others. Throws InvalidArgument where first is
/// above last.
std::vector<Size> sweep(Size first, Size last, int factor);
/// Bytes, from -b to -e by factors of -f.
std::vector<Size> bench_sizes(const Arguments& arguments);

}  // namespace tandem::cli
