#pragma once
/// Reductions: how values of several PEs are combined.

#include <cstdint>
#include <string_view>
#include <type_traits>

#include "tandem/numeric.h"

namespace tandem {

/// Reductions as NCCL's `ncclRedOp_t` defines them. A reduction applies `premultiply` to each PE's own values
/// (kPremulSum only), then `apply` in the order that the algorithm documents. At the end it applies `finish` once,
/// which changes values of kAvg only.
enum class ReduceOp { kSum, kProd, kMin, kMax, kAvg, kPremulSum };
/// All reductions, in the order of the enumeration.
inline constexpr ReduceOp kReduceOps[] = {ReduceOp::kSum, ReduceOp::kProd, ReduceOp::kMin,
                                          ReduceOp::kMax, ReduceOp::kAvg,  ReduceOp::kPremulSum};

/// Returns "sum", "prod", "min", "max", "avg" or "premul_sum".
const char* name(ReduceOp op);
/// The inverse of `name`. Throws InvalidArgument with the list of names.
ReduceOp parse_reduce_op(std::string_view text);

namespace impl {

/// The type in which sums and products of T are computed. Integers become unsigned and at least as wide as `unsigned`,
/// so that they wrap without undefined behaviour.
template <class T>
using Arithmetic =
    typename std::conditional_t<std::is_integral_v<T>, std::conditional<sizeof(T) == 8, std::uint64_t, std::uint32_t>,
                                std::type_identity<T>>::type;

}  // namespace impl

/// Returns a (op) b for values of an accumulator type (see `Accumulator`).
///
/// Integers wrap. kAvg and kPremulSum add. Minimum and maximum propagate NaN, like IEEE 754-2019 `minimum` and
/// `maximum`, so that a NaN of one PE reaches all in any order. For +0 and -0 they return the first operand.
template <class T>
TANDEM_DEVICE constexpr T apply(ReduceOp op, T a, T b) {
  static_assert(std::is_arithmetic_v<T>, "values meet in their accumulator type");
  using A = impl::Arithmetic<T>;
  switch (op) {
    case ReduceOp::kProd:
      return static_cast<T>(static_cast<A>(a) * static_cast<A>(b));
    case ReduceOp::kMin:
      return b < a || b != b ? b : a;  // a NaN in `a` stays: neither comparison holds
    case ReduceOp::kMax:
      return a < b || b != b ? b : a;
    case ReduceOp::kSum:
    case ReduceOp::kAvg:
    case ReduceOp::kPremulSum:
      break;
  }
  return static_cast<T>(static_cast<A>(a) + static_cast<A>(b));
}

/// Returns whether `apply` is a sum under `op`.
TANDEM_DEVICE constexpr bool adds(ReduceOp op) {
  return op == ReduceOp::kSum || op == ReduceOp::kAvg || op == ReduceOp::kPremulSum;
}

/// Returns the result for the value of `apply` over `count` PEs (at least 1). kAvg divides by `count`, integers towards
/// zero (after the sum has wrapped). Other operations leave the value unchanged.
template <class T>
TANDEM_DEVICE constexpr T finish(ReduceOp op, T value, Size count) {
  static_assert(std::is_arithmetic_v<T>, "values meet in their accumulator type");
  if (op != ReduceOp::kAvg) return value;
  if constexpr (std::is_floating_point_v<T>) {
    return value / static_cast<T>(count);
  } else if constexpr (std::is_signed_v<T>) {
    return static_cast<T>(static_cast<std::int64_t>(value) / count);
  } else {
    return static_cast<T>(static_cast<std::uint64_t>(value) / static_cast<std::uint64_t>(count));
  }
}

/// Multiplies a PE's own value under kPremulSum. Integers wrap.
template <class T>
TANDEM_DEVICE constexpr T premultiply(T value, T scale) {
  return apply(ReduceOp::kProd, value, scale);
}

}  // namespace tandem
