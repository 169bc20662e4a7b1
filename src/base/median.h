#pragma once
/// The median of measured values.

#include <algorithm>
#include <cstddef>
#include <vector>

namespace tandem {

/// Returns the median of at least one value; for an even number the upper of the two.
inline double median(std::vector<double> values) {
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

}  // namespace tandem
