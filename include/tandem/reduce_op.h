#pragma once
/// How values of several PEs become one.

#include <cstdint>
#include <string_view>
#include <type_traits>

#include "tandem/numeric.h"

namespace tandem {

/// Reductions, as NCCL's `ncclRedOp_t` has them. A reduction is: `premultiply` of each PE's own values (kPremulSum
/// only), `apply` in the order that the algorithm documents, `finish` once (it changes the values of kAvg only).
enum class ReduceOp { kSum, kProd, kMin, kMax, kAvg, kPremulSum };
/// All reductions, in the order of the enumeration.
inline constexpr ReduceOp kReduceOps[] = {ReduceOp::kSum, ReduceOp::kProd, ReduceOp::kMin,
                                          ReduceOp::kMax, ReduceOp::kAvg,  ReduceOp::kPremulSum};

/// "sum", "prod", "min", "max", "avg", "premul_sum".
const char* name(ReduceOp op);
/// The inverse of `name`. Throws InvalidArgument that lists the names.
ReduceOp parse_reduce_op(std::string_view text);

namespace impl {

/// Where T's sums and products are computed: integers without sign, and not narrower than `unsigned`, so that they wrap
/// and nothing is undefined.
template <class T>
using Arithmetic =
    typename std::conditional_t<std::is_integral_v<T>, std::conditional<sizeof(T) == 8, std::uint64_t, std::uint32_t>,
                                std::type_identity<T>>::type;

}  // namespace impl

/// a (op) b for values of an accumulator type (see `Accumulator`).
///
/// Integers wrap. kAvg and kPremulSum add. Minimum and maximum propagate NaN, as IEEE 754-2019 `minimum` and `maximum`
/// do, so that a NaN on one PE is seen on all whatever the order is; of +0 and -0 the first operand is returned.
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

/// Whether `apply` is a sum under `op`.
TANDEM_DEVICE constexpr bool adds(ReduceOp op) {
  return op == ReduceOp::kSum || op == ReduceOp::kAvg || op == ReduceOp::kPremulSum;
}

/// The result, from what `apply` gave over `count` PEs (at least 1): kAvg divides by `count`, integers towards zero
/// (after the sum has wrapped); everything else is left as it is.
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

/// A PE's own value before it meets others under kPremulSum; integers wrap.
template <class T>
TANDEM_DEVICE constexpr T premultiply(T value, T scale) {
  return apply(ReduceOp::kProd, value, scale);
}

}  // namespace tandem
