#pragma once
/// Standard normal data for benchmarks on GPUs: values repeat with a period that is no power of two.

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <numbers>
#include <vector>

#include "support/collective_values.h"
#include "tandem/world.h"

namespace tandem::bench {

/// Values of T, which has fewer bytes than a float.
template <class T>
class NormalDataOf {
 public:
  explicit NormalDataOf(int seed) : values_((std::size_t{1} << 20) - 3) {
    for (std::size_t i = 0; i < values_.size(); ++i) {
      const std::uint64_t bits = test::mix(1, 2, seed, i);
      const double u = (static_cast<double>(bits >> 40) + 1) * 0x1p-24;
      const double v = static_cast<double>(bits & 0xFF'FFFF) * 0x1p-24;
      values_[i] = T(static_cast<float>(std::sqrt(-2 * std::log(u)) * std::cos(2 * std::numbers::pi * v)));
    }
  }
  double at(Size i) const { return static_cast<float>(values_[static_cast<std::size_t>(i) % values_.size()]); }
  /// Values [begin, begin + count) to `to`, on the device.
  void fill(World& world, void* to, Size begin, Size count) const {
    constexpr Size kBytes = sizeof(T);
    const auto period = static_cast<Size>(values_.size());
    for (Size done = 0; done < count;) {
      const Size from = (begin + done) % period;
      const Size now = std::min(period - from, count - done);
      world.copy_in(static_cast<std::byte*>(to) + done * kBytes, values_.data() + from, now * kBytes);
      done += now;
    }
  }

 private:
  std::vector<T> values_;
};
using NormalData = NormalDataOf<bf16>;

}  // namespace tandem::bench
