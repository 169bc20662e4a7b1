#pragma once
/// Test data of collectives, a pure function of call, PE and index, and what must come out of a reduction.

#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <numbers>

#include "tandem/advanced/collective_traits.h"
#include "tandem/numeric.h"
#include "tandem/reduce_op.h"

namespace tandem::test {

/// A well-mixed word from four numbers (the finaliser of SplitMix64, Steele, Lea and Flood 2014, over a sum of odd
/// multiples).
inline std::uint64_t mix(std::uint64_t a, std::uint64_t b, std::uint64_t c, std::uint64_t d) {
  std::uint64_t x = (a + 1) * 0x9E3779B97F4A7C15U + (b + 1) * 0xC2B2AE3D27D4EB4FU + (c + 1) * 0x165667B19E3779F9U +
                    (d + 1) * 0xD6E8FEB86659FD93U;
  x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9U;
  x = (x ^ (x >> 27)) * 0x94D049BB133111EBU;
  return x ^ (x >> 31);
}
template <class B, class C, class D>
std::uint64_t mix(std::uint64_t a, B b, C c, D d) {
  return mix(a, static_cast<std::uint64_t>(b), static_cast<std::uint64_t>(c), static_cast<std::uint64_t>(d));
}

/// FNV-1a.
inline std::uint64_t hash_bytes(std::uint64_t hash, const void* data, Size bytes) {
  const auto* const from = static_cast<const unsigned char*>(data);
  for (Size i = 0; i < bytes; ++i) hash = (hash ^ from[i]) * 0x100000001B3U;
  return hash;
}

template <class T>
bool same_bits(T a, T b) {
  return std::memcmp(&a, &b, sizeof(T)) == 0;
}

/// The greatest n such that T holds all of 0, 1, ..., n (a smaller one for wide types).
template <class T>
constexpr Size whole_numbers() {
  switch (dtype_of<T>()) {
    case DType::kE5M2:
      return 8;
    case DType::kE4M3:
      return 16;
    case DType::kI8:
      return 127;
    case DType::kU8:
      return 255;
    case DType::kBF16:
      return 256;
    default:
      return 2048;
  }
}

/// Half the distance from 1 to the next value of T.
template <class T>
constexpr double rounding() {
  switch (dtype_of<T>()) {
    case DType::kE5M2:
      return 0x1p-3;
    case DType::kE4M3:
      return 0x1p-4;
    case DType::kBF16:
      return 0x1p-8;
    case DType::kF16:
      return 0x1p-11;
    case DType::kF32:
      return 0x1p-24;
    case DType::kF64:
      return 0x1p-53;
    default:
      return 0;
  }
}

/// A reduction's result: `value`, or anything within `tolerance` of it.
template <class T>
struct Expected {
  T value;
  double reference = 0;
  double tolerance = 0;

  bool allows(T got) const { return same_bits(got, value) || std::abs(convert<double>(got) - reference) <= tolerance; }
};

/// The data of one case.
struct Values {
  ReduceOp op = ReduceOp::kSum;
  bool random = false;
  std::uint64_t seed = 1;
  int pes = 1;

  double scale(int pe) const { return op == ReduceOp::kPremulSum ? 1 + pe % 2 : 1; }

  template <class T>
  T input(int call, int pe, Size i) const {
    const std::uint64_t bits = mix(seed, call, pe, i);
    if (!random) return exact<T>(call, pe, i, bits);
    if constexpr (std::is_integral_v<T>)
      return static_cast<T>(bits);
    else
      return convert<T>(op == ReduceOp::kProd ? near_one(bits) : normal(bits));
  }

  /// The reduction of an element of some PEs.
  template <class T>
  Expected<T> reduced(int call, const CollectiveSource& from) const {
    using A = Accumulator<T>;
    A total{};
    double sum = 0;
    double magnitude = 0;
    for (int i = 0; i < from.pes; ++i) {
      const int pe = from.first + i;
      const T own = input<T>(call, pe, from.index);
      const A scaled =
          op == ReduceOp::kPremulSum ? premultiply(convert<A>(own), convert<A>(scale(pe))) : convert<A>(own);
      total = i == 0 ? scaled : apply(op, total, scaled);
      const auto x = convert<double>(scaled);
      sum = i == 0 ? x : apply(op, sum, x);
      magnitude = op == ReduceOp::kProd ? std::abs(sum) : magnitude + std::abs(x);
    }
    Expected<T> want{convert<T>(finish(op, total, from.pes))};
    want.reference = finish(op, sum, from.pes);
    want.tolerance = -1;
    if (!random || !is_float<T>) return want;
    // Minima and maxima are exact, but +0 or -0 depends on the order. Otherwise every PE rounds at most twice (its
    // input, then a partial sum). Each rounding changes the present value by at most this share.
    want.tolerance = 0;
    if (op == ReduceOp::kMin || op == ReduceOp::kMax) return want;
    const int n = from.pes;
    want.tolerance = 2 * n * rounding<T>() * magnitude / (op == ReduceOp::kAvg ? n : 1) + smallest<T>() * n;
    return want;
  }

 private:
  /// In any order every partial result is a value of T, because few PEs contribute small values to an element. The
  /// contributing PEs differ between elements.
  template <class T>
  T exact(int call, int pe, Size i, std::uint64_t bits) const {
    constexpr int kContribute = 4;
    const auto contributes = [&] {
      const auto period = static_cast<std::uint64_t>((pes + kContribute - 1) / kContribute);
      return (static_cast<std::uint64_t>(pe) + mix(seed, call, 99, i)) % period == 0;
    };
    constexpr bool is_signed = !std::is_integral_v<T> || std::is_signed_v<T>;
    if (op == ReduceOp::kProd) {
      constexpr double kFactors[] = {1, 2, -1, 0.5};
      return convert<T>(contributes() ? kFactors[bits % (is_float<T> ? 4 : is_signed ? 3 : 2)] : 1.0);
    }
    const bool adds = op != ReduceOp::kMin && op != ReduceOp::kMax;
    const Size most = whole_numbers<T>() / (adds ? kContribute : 1) / (op == ReduceOp::kPremulSum ? 2 : 1);
    const auto value = static_cast<double>(bits % static_cast<std::uint64_t>(most + 1));
    if (adds && !contributes()) return convert<T>(0.0);
    return convert<T>(is_signed && (bits >> 60) % 2 == 1 && value != 0 ? -value : value);
  }

  static double uniform(std::uint64_t bits) { return (static_cast<double>(bits >> 11) + 0.5) * 0x1p-53; }
  /// Box and Muller 1958.
  static double normal(std::uint64_t bits) {
    return std::sqrt(-2 * std::log(uniform(bits))) * std::cos(2 * std::numbers::pi * uniform(mix(bits, 1, 2, 3)));
  }
  static double near_one(std::uint64_t bits) { return (bits % 2 == 0 ? 1 : -1) * (0.75 + uniform(bits) / 2); }
  /// A value below which T has no full precision any more.
  template <class T>
  static constexpr double smallest() {
    switch (dtype_of<T>()) {
      case DType::kE4M3:
        return 0x1p-9;
      case DType::kE5M2:
        return 0x1p-16;
      case DType::kF16:
        return 0x1p-24;
      default:
        return 0;
    }
  }
};

}  // namespace tandem::test
