#pragma once
/// Conversion between float and the small formats by the GPU's own instructions, if it has them. It gives the same bits
/// as the integer arithmetic of numeric_convert.h, with a tenth of the instructions (PTX ISA, "Data Movement and
/// Conversion Instructions: cvt").

#include <cstdint>
#include <type_traits>

#include "tandem/impl/numeric_formats.h"

namespace tandem::impl {

#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
template <class Format>
__device__ inline typename Format::Bits hardware_from_float(float value) {
  std::uint16_t bits = 0;
  if constexpr (std::is_same_v<Format, F16Format>) {
    asm("cvt.rn.f16.f32 %0, %1;" : "=h"(bits) : "f"(value));
  } else if constexpr (std::is_same_v<Format, BF16Format>) {
    asm("cvt.rn.bf16.f32 %0, %1;" : "=h"(bits) : "f"(value));
  } else if constexpr (std::is_same_v<Format, E4M3Format>) {
    asm("cvt.rn.satfinite.e4m3x2.f32 %0, %1, %2;" : "=h"(bits) : "f"(0.0F), "f"(value));
  } else {
    asm("cvt.rn.satfinite.e5m2x2.f32 %0, %1, %2;" : "=h"(bits) : "f"(0.0F), "f"(value));
    // Half-way between the largest number and the next power of two. From there on the result is infinity, where `cvt`
    // saturates.
    constexpr float kRoundsToInfinity = 61440.0F;
    if (value >= kRoundsToInfinity) bits = 0x7C;
    if (value <= -kRoundsToInfinity) bits = 0xFC;
  }
  return static_cast<typename Format::Bits>(bits);
}

template <class Format>
__device__ inline float hardware_to_float(typename Format::Bits stored) {
  float value = 0;
  if constexpr (std::is_same_v<Format, BF16Format>) {
    value = __uint_as_float(static_cast<std::uint32_t>(stored) << 16);
  } else if constexpr (std::is_same_v<Format, F16Format>) {
    asm("cvt.f32.f16 %0, %1;" : "=f"(value) : "h"(stored));
  } else if constexpr (std::is_same_v<Format, E5M2Format>) {  // the upper byte of an f16
    asm("cvt.f32.f16 %0, %1;" : "=f"(value) : "h"(static_cast<std::uint16_t>(stored << 8)));
  } else {
    std::uint32_t pair = 0;
    asm("cvt.rn.f16x2.e4m3x2 %0, %1;" : "=r"(pair) : "h"(static_cast<std::uint16_t>(stored)));
    asm("cvt.f32.f16 %0, %1;" : "=f"(value) : "h"(static_cast<std::uint16_t>(pair)));
  }
  return value;
}

/// Returns two numbers rounded to a format of 16 bits, the first in the lower half. One instruction does it.
template <class Format>
__device__ inline std::uint32_t hardware_pair(float low, float high) {
  std::uint32_t bits = 0;
  if constexpr (std::is_same_v<Format, F16Format>)
    asm("cvt.rn.f16x2.f32 %0, %1, %2;" : "=r"(bits) : "f"(high), "f"(low));
  else
    asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(bits) : "f"(high), "f"(low));
  return bits;
}

/// Returns four numbers rounded to E4M3, the first in the lowest byte.
__device__ inline std::uint32_t hardware_four(float a, float b, float c, float d) {
  std::uint16_t low = 0;
  std::uint16_t high = 0;
  asm("cvt.rn.satfinite.e4m3x2.f32 %0, %1, %2;" : "=h"(low) : "f"(b), "f"(a));
  asm("cvt.rn.satfinite.e4m3x2.f32 %0, %1, %2;" : "=h"(high) : "f"(d), "f"(c));
  return low | static_cast<std::uint32_t>(high) << 16;
}
#endif

}  // namespace tandem::impl
