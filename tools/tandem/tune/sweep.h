#pragma once
/// The sizes of a sweep.

#include <vector>

#include "tools/tandem/options/arguments.h"

namespace tandem::cli {

/// Returns first, first * factor, ... up to last. Zero is separate, before the others. Throws InvalidArgument if first
/// is above last.
std::vector<Size> sweep(Size first, Size last, int factor);
/// Returns the sizes in bytes, from -b to -e by factors of -f.
std::vector<Size> bench_sizes(const SweepOptions&);
/// Returns the rows or batches of a call of include/tandem/layer, by default from 1 to 1024.
std::vector<Size> layer_sizes(const SweepOptions&);
/// Returns the rows of an operator, by default from 512 to `most`.
std::vector<Size> bench_rows(const SweepOptions&, Size most);

}  // namespace tandem::cli
