#pragma once
/// The small floating-point formats.

#include <cstdint>

namespace tandem::impl {

/// Sign, `kExponent` bits of biased exponent, `kMantissa` bits of mantissa. With `kInfinity` the highest exponent means
/// infinity and NaN as in IEEE 754. Otherwise all ones is the only NaN, and larger values become the largest finite
/// one.
struct F16Format {
  using Bits = std::uint16_t;
  static constexpr int kExponent = 5, kMantissa = 10;
  static constexpr bool kInfinity = true;
};
struct BF16Format {
  using Bits = std::uint16_t;
  static constexpr int kExponent = 8, kMantissa = 7;
  static constexpr bool kInfinity = true;
};
struct E4M3Format {
  using Bits = std::uint8_t;
  static constexpr int kExponent = 4, kMantissa = 3;
  static constexpr bool kInfinity = false;
};
struct E5M2Format {
  using Bits = std::uint8_t;
  static constexpr int kExponent = 5, kMantissa = 2;
  static constexpr bool kInfinity = true;
};

}  // namespace tandem::impl
