#pragma once
/// Element types: the small floating-point formats, their names at run time, and conversion between all of them.
///
/// | type     | format                                            | range                       | beyond it    |
/// |----------|---------------------------------------------------|-----------------------------|--------------|
/// | f16      | IEEE 754 binary16                                 | 65504                       | infinity     |
/// | bf16     | upper half of binary32                            | as float                    | infinity     |
/// | fp8_e4m3 | OCP OFP8 E4M3 (no infinity; all ones is NaN)      | 448, least 2^-9             | +-448        |
/// | fp8_e5m2 | OCP OFP8 E5M2                                     | 57344, least 2^-16          | infinity     |
///
/// Formats of 8 bits: "OCP 8-bit Floating Point Specification (OFP8)" revision 1.0, sections 5.1 and 5.2. E4M3
/// saturates, infinity included, as PTX `cvt.rn.satfinite.e4m3x2.f32` does (PTX ISA, "Data Movement and Conversion
/// Instructions: cvt", `.satfinite`).
/// E5M2 follows OFP8's non-saturating mode; PTX offers the saturating one only.
/// Rounding is to nearest, ties to even. A NaN stays a NaN, but not necessarily the same one.

#include <cstddef>
#include <cstdint>
#include <limits>
#include <string_view>
#include <type_traits>

#include "tandem/error.h"
#include "tandem/impl/config.h"
#include "tandem/impl/numeric_convert.h"
#include "tandem/range.h"

namespace tandem {

/// A floating-point number in storage, without arithmetic; convert it to float first. Its bits are uninitialised by
/// default.
template <class Format>
struct SmallFloat {
  /// The unsigned integer of the same size.
  using Bits = typename Format::Bits;

  SmallFloat() = default;
  /// Rounds `value` to the nearest, ties to even.
  TANDEM_DEVICE constexpr explicit SmallFloat(float value) : bits(impl::from_float<Format>(value)) {}
  /// Returns the exact value.
  TANDEM_DEVICE constexpr explicit operator float() const { return impl::to_float<Format>(bits); }
  /// Returns the number with these bits.
  TANDEM_DEVICE static constexpr SmallFloat from_bits(Bits bits) {
    SmallFloat result(0.0F);
    result.bits = bits;
    return result;
  }

  Bits bits;  ///< the number as it is stored
};

/// IEEE 754 binary16.
using f16 = SmallFloat<impl::F16Format>;
/// bfloat16: the upper half of an f32.
using bf16 = SmallFloat<impl::BF16Format>;
/// OFP8 E4M3, without infinities.
using fp8_e4m3 = SmallFloat<impl::E4M3Format>;
/// OFP8 E5M2.
using fp8_e5m2 = SmallFloat<impl::E5M2Format>;

/// Whether T is a SmallFloat.
template <class T>
inline constexpr bool is_small_float = false;
/// The specialization for SmallFloat.
template <class Format>
inline constexpr bool is_small_float<SmallFloat<Format>> = true;
/// True for f64, f32 and the small formats.
template <class T>
inline constexpr bool is_float = std::is_floating_point_v<T> || is_small_float<T>;

/// The accumulator type of T: float for floats of 16 and 8 bits, T itself otherwise.
template <class T>
using Accumulator = std::conditional_t<is_small_float<T>, float, T>;

/// Element types by name.
enum class DType { kF32, kF16, kBF16, kE4M3, kE5M2, kI8, kU8, kI32, kU32, kI64, kU64, kF64 };
/// All element types, in the order of the enumeration.
inline constexpr DType kDTypes[] = {DType::kF32, DType::kF16, DType::kBF16, DType::kE4M3, DType::kE5M2, DType::kI8,
                                    DType::kU8,  DType::kI32, DType::kU32,  DType::kI64,  DType::kU64,  DType::kF64};

/// Calls `f.template operator()<T>()` with the element type of `type`. Host only.
template <class F>
decltype(auto) dispatch(DType type, F&& f) {
  switch (type) {
    case DType::kF32:
      return f.template operator()<float>();
    case DType::kF16:
      return f.template operator()<f16>();
    case DType::kBF16:
      return f.template operator()<bf16>();
    case DType::kE4M3:
      return f.template operator()<fp8_e4m3>();
    case DType::kE5M2:
      return f.template operator()<fp8_e5m2>();
    case DType::kI8:
      return f.template operator()<std::int8_t>();
    case DType::kU8:
      return f.template operator()<std::uint8_t>();
    case DType::kI32:
      return f.template operator()<std::int32_t>();
    case DType::kU32:
      return f.template operator()<std::uint32_t>();
    case DType::kI64:
      return f.template operator()<std::int64_t>();
    case DType::kU64:
      return f.template operator()<std::uint64_t>();
    case DType::kF64:
      return f.template operator()<double>();
  }
  throw InvalidArgument("dtype: not one of the library's element types");
}

/// Returns the name of T at run time. T is one of the twelve element types.
template <class T>
TANDEM_DEVICE constexpr DType dtype_of() {
  if constexpr (std::is_same_v<T, float>) return DType::kF32;
  if constexpr (std::is_same_v<T, f16>) return DType::kF16;
  if constexpr (std::is_same_v<T, bf16>) return DType::kBF16;
  if constexpr (std::is_same_v<T, fp8_e4m3>) return DType::kE4M3;
  if constexpr (std::is_same_v<T, fp8_e5m2>) return DType::kE5M2;
  if constexpr (std::is_same_v<T, double>) return DType::kF64;
  if constexpr (std::is_integral_v<T>) {
    static_assert(sizeof(T) == 1 || sizeof(T) == 4 || sizeof(T) == 8, "integers have 8, 32 or 64 bits");
    constexpr bool is_signed = std::is_signed_v<T>;
    if constexpr (sizeof(T) == 1) return is_signed ? DType::kI8 : DType::kU8;
    if constexpr (sizeof(T) == 4) return is_signed ? DType::kI32 : DType::kU32;
    if constexpr (sizeof(T) == 8) return is_signed ? DType::kI64 : DType::kU64;
  }
  static_assert(is_float<T> || std::is_integral_v<T>, "not an element type");
}

/// Returns the bytes of one element.
TANDEM_DEVICE constexpr Size size_of(DType type) {
  switch (type) {
    case DType::kE4M3:
    case DType::kE5M2:
    case DType::kI8:
    case DType::kU8:
      return 1;
    case DType::kF16:
    case DType::kBF16:
      return 2;
    case DType::kF32:
    case DType::kI32:
    case DType::kU32:
      return 4;
    case DType::kF64:
    case DType::kI64:
    case DType::kU64:
      return 8;
  }
  return 0;
}

/// Returns "f32", "f16", "bf16", "fp8_e4m3", "fp8_e5m2", "i8", "u8", "i32", "u32", "i64", "u64" or "f64".
const char* name(DType type);
/// The inverse of `name`. Throws InvalidArgument with the list of names.
DType parse_dtype(std::string_view text);

namespace impl {

/// Limits of an integer type as values of a float type. They are constants, because device code may not call
/// numeric_limits.
template <class Float, class Integer>
struct IntegerLimits {
  static constexpr Integer kGreatest = std::numeric_limits<Integer>::max();
  static constexpr Integer kLeast = std::numeric_limits<Integer>::min();
  /// The first value beyond the range: a power of two, exact in Float even if kGreatest is not.
  static constexpr Float kBeyond =
      static_cast<Float>(std::uint64_t{1} << (std::numeric_limits<Integer>::digits - 1)) * 2;
};

}  // namespace impl

/// Converts one value to another type.
///
/// Between floats it rounds to nearest even. From f64 or a 64-bit integer to a small format it takes two steps, through
/// float. From float to integer it rounds towards zero, takes the nearest end of the range beyond it, and gives 0 for
/// NaN (as PTX `cvt.rzi`). From integer to integer it wraps.
template <class To, class From>
TANDEM_DEVICE constexpr To convert(From from) {
  if constexpr (std::is_same_v<To, From>) {
    return from;
  } else if constexpr (is_small_float<From>) {
    return convert<To>(static_cast<float>(from));
  } else if constexpr (is_small_float<To>) {
    return To(static_cast<float>(from));
  } else if constexpr (std::is_floating_point_v<From> && std::is_integral_v<To>) {
    using L = impl::IntegerLimits<From, To>;
    if (!(from < L::kBeyond)) return from == from ? L::kGreatest : To{0};
    if (std::is_signed_v<To> ? from < -L::kBeyond : !(from > 0)) return L::kLeast;
    return static_cast<To>(from);
  } else {
    return static_cast<To>(from);
  }
}

/// Converts `count` values. The arrays do not overlap.
template <class From, class To>
TANDEM_DEVICE void convert(const From* from, To* to, Size count) {
  for (Size i = 0; i < count; ++i) to[i] = convert<To>(from[i]);
}

}  // namespace tandem
