#pragma once
/// Standard normal bf16 data for benchmarks on GPUs: values repeat with a period that is no power of two.

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <numbers>
#include <vector>

#include "support/collective_values.h"
#include "tandem/world.h"

namespace tandem::bench {

class NormalData {
 public:
  explicit NormalData(int seed) : values_((std::size_t{1} << 20) - 3) {
    for (std::size_t i = 0; i < values_.size(); ++i) {
      const std::uint64_t bits = test::mix(1, 2, seed, i);
      const double u = (static_cast<double>(bits >> 40) + 1) * 0x1p-24;
      const double v = static_cast<double>(bits & 0xFF'FFFF) * 0x1p-24;
      values_[i] = bf16(static_cast<float>(std::sqrt(-2 * std::log(u)) * std::cos(2 * std::numbers::pi * v)));
    }
  }
  double at(Size i) const { return static_cast<float>(values_[static_cast<std::size_t>(i) % values_.size()]); }
  /// Values [begin, begin + count) to `to`, on the device.
  void fill(World& world, void* to, Size begin, Size count) const {
    const auto period = static_cast<Size>(values_.size());
    for (Size done = 0; done < count;) {
      const Size from = (begin + done) % period;
      const Size now = std::min(period - from, count - done);
      world.copy_in(static_cast<std::byte*>(to) + done * 2, values_.data() + from, now * 2);
      done += now;
    }
  }

 private:
  std::vector<bf16> values_;
};

}  // namespace tandem::bench
