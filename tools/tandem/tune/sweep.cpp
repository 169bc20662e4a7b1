#include "tools/tandem/tune/sweep.h"

#include <fmt/format.h>

#include "tandem/error.h"
#include "tools/tandem/options/options.h"

namespace tandem::cli {

std::vector<Size> sweep(Size first, Size last, int factor) {
  if (first > last) throw InvalidArgument(fmt::format("-b: {} given, allowed is at most -e, {}", first, last));
  std::vector<Size> sizes;
  if (first == 0) sizes.push_back(first++);
  for (Size size = first; size <= last; size *= factor) {
    sizes.push_back(size);
    if (size > last / factor) break;
  }
  return sizes;
}

std::vector<Size> bench_sizes(const SweepOptions& a) {
  return sweep(parse_size("-b", a.first.value_or("1K")), parse_size("-e", a.last.value_or("16M")), a.factor);
}

std::vector<Size> layer_sizes(const SweepOptions& a) {
  constexpr Size kFirst = 1, kLast = 1024;
  const Size last = a.last ? parse_size("-e", *a.last) : kLast;
  return sweep(a.first ? parse_size("-b", *a.first) : min(kFirst, last), last, a.factor);
}

std::vector<Size> bench_rows(const SweepOptions& a, Size most) {
  constexpr Size first_rows = 512;
  const Size last = a.last ? parse_size("-e", *a.last) : most;
  return sweep(a.first ? parse_size("-b", *a.first) : min(first_rows, last), last, a.factor);
}

}  // namespace tandem::cli
