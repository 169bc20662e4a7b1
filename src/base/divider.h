#pragma once
/// Division by a number that kernels get as an argument. A GPU takes some twenty instructions for a division, and two
/// for this multiplication.

#include <cstdint>

#include "tandem/impl/config.h"
#include "tandem/numeric.h"

namespace tandem {

/// Divides numbers from 0 to 2^31 - 1 by 1 to 2^31 - 1.
class Divider {
 public:
  Divider() = default;
  explicit Divider(Size divisor) {
    while ((Size{1} << shift_) < divisor) ++shift_;
    const std::uint64_t power = std::uint64_t{1} << (31 + shift_);
    factor_ = static_cast<std::uint32_t>((power + static_cast<std::uint64_t>(divisor) - 1) /
                                         static_cast<std::uint64_t>(divisor));
  }

  /// Returns the quotient, rounded down.
  TANDEM_DEVICE std::int32_t operator()(std::int32_t n) const {
    const std::uint64_t product = std::uint64_t{2 * static_cast<std::uint32_t>(n)} * factor_;
    return static_cast<std::int32_t>(static_cast<std::uint32_t>(product >> 32) >> shift_);
  }

 private:
  std::uint32_t factor_ = std::uint32_t{1} << 31;  // ceil(2^(31 + shift) / divisor)
  std::uint32_t shift_ = 0;                        // the least with 2^shift >= divisor
};

}  // namespace tandem
