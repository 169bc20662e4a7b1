#pragma once
/// Conversion between float and the small floating-point formats, in integer arithmetic without branches. Loops over it
/// vectorise, and every backend gets the same bits.

#include <cstdint>

#include "tandem/impl/config.h"
#include "tandem/impl/numeric_formats.h"
#if defined(__CUDACC__)
#include "tandem/impl/cuda/convert.cuh"
#endif

namespace tandem::impl {

TANDEM_DEVICE constexpr std::uint32_t bits_of(float value) { return __builtin_bit_cast(std::uint32_t, value); }
TANDEM_DEVICE constexpr float float_of(std::uint32_t bits) { return __builtin_bit_cast(float, bits); }

/// Returns condition ? yes : no without a jump, which would keep g++ 12 from vectorising the loop.
TANDEM_DEVICE constexpr std::uint32_t select(bool condition, std::uint32_t yes, std::uint32_t no) {
  const std::uint32_t mask = 0U - static_cast<std::uint32_t>(condition);
  return (yes & mask) | (no & ~mask);
}

inline constexpr std::uint32_t kFloatInfinity = 0x7F80'0000;

/// Constants of a format.
template <class Format>
struct Layout {
  static constexpr int kBias = (1 << (Format::kExponent - 1)) - 1;
  static constexpr int kShift = 23 - Format::kMantissa;  // from its mantissa to float's
  static constexpr int kSignShift = 31 - Format::kExponent - Format::kMantissa;
  static constexpr std::uint32_t kMagnitude = (1U << (Format::kExponent + Format::kMantissa)) - 1;
  static constexpr std::uint32_t kInfinityBits = ((1U << Format::kExponent) - 1) << Format::kMantissa;
  static constexpr std::uint32_t kNan =
      Format::kInfinity ? kInfinityBits | (1U << (Format::kMantissa - 1)) : kMagnitude;
  // Bits of floats: the least normal number, the first power of two that is too large, the largest finite number.
  static constexpr std::uint32_t kLeastNormal = static_cast<std::uint32_t>(128 - kBias) << 23;
  static constexpr std::uint32_t kTooLarge = static_cast<std::uint32_t>(128 + kBias) << 23;
  static constexpr std::uint32_t kRebias = static_cast<std::uint32_t>(127 - kBias) << 23;
  static constexpr std::uint32_t kLargest = ((kMagnitude - 1) << kShift) + kRebias;  // for formats without infinity
  // A float whose unit in the last place is the format's least subnormal: adding it rounds a subnormal to nearest even.
  static constexpr std::uint32_t kSubnormalMagic = static_cast<std::uint32_t>(128 - kBias + kShift) << 23;
};

/// Rounds to nearest, ties to even.
template <class Format>
TANDEM_DEVICE constexpr typename Format::Bits from_float(float value) {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
  if (!__builtin_is_constant_evaluated()) return hardware_from_float<Format>(value);
#endif
  using L = Layout<Format>;
  const std::uint32_t bits = bits_of(value);
  const std::uint32_t sign = (bits & 0x8000'0000U) >> L::kSignShift;
  std::uint32_t magnitude = bits & 0x7FFF'FFFFU;
  const bool nan = magnitude > kFloatInfinity;
  if constexpr (!Format::kInfinity) magnitude = select(magnitude < L::kLargest, magnitude, L::kLargest);

  const std::uint32_t odd = (magnitude >> L::kShift) & 1;
  std::uint32_t result = (magnitude - L::kRebias + (1U << (L::kShift - 1)) - 1 + odd) >> L::kShift;
  if constexpr (L::kBias != 127) {  // else the subnormals of both formats coincide, and the rule above holds for them
    const std::uint32_t subnormal =
        bits_of(float_of(select(magnitude < L::kLeastNormal, magnitude, 0)) + float_of(L::kSubnormalMagic)) -
        L::kSubnormalMagic;
    result = select(magnitude < L::kLeastNormal, subnormal, result);
    if constexpr (Format::kInfinity) result = select(magnitude >= L::kTooLarge, L::kInfinityBits, result);
  }
  result = select(nan, L::kNan, result);
  return static_cast<typename Format::Bits>(result | sign);
}

/// Exact conversion.
template <class Format>
TANDEM_DEVICE constexpr float to_float(typename Format::Bits stored) {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
  if (!__builtin_is_constant_evaluated()) return hardware_to_float<Format>(stored);
#endif
  using L = Layout<Format>;
  const std::uint32_t sign = (static_cast<std::uint32_t>(stored) << L::kSignShift) & 0x8000'0000U;
  const std::uint32_t magnitude = stored & L::kMagnitude;
  const std::uint32_t shifted = magnitude << L::kShift;
  std::uint32_t result = shifted + L::kRebias;
  if constexpr (L::kBias != 127) {
    // A subnormal becomes the fraction of the least normal number, which is then subtracted. Other numbers subtract 0,
    // so that the subtraction is unconditional.
    const bool subnormal = magnitude < (1U << Format::kMantissa);
    const float biased = float_of(shifted + select(subnormal, L::kLeastNormal, L::kRebias));
    result = bits_of(biased - float_of(select(subnormal, L::kLeastNormal, 0)));
    if constexpr (Format::kInfinity) {
      result = select(magnitude >= L::kInfinityBits, shifted | kFloatInfinity, result);
    } else {
      result = select(magnitude == L::kMagnitude, kFloatInfinity | 0x0040'0000U, result);
    }
  }
  return float_of(result | sign);
}

}  // namespace tandem::impl
