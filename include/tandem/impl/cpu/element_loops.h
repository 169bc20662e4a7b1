#pragma once
/// Loops over the elements of fragments. For element types and their accumulators the longer ones are compiled
/// once, in the library.

#include <cstdint>
#include <cstring>
#include <type_traits>

#include "tandem/impl/cpu/small_floats.h"
#include "tandem/numeric.h"
#include "tandem/range.h"
#include "tandem/reduce_op.h"

namespace tandem::cpu::impl {

/// Sets to[i] = f(from[i]), f(a[i], b[i]) or f(to[i], from[i]) for arrays that do not overlap. The inner loops have a
/// known length: with -O2, g++ 12 vectorises no others.
template <class To, class From, class F>
void for_each_element(To* __restrict to, const From* __restrict from, Size count, F f) {
  constexpr Size kStep = 64;
  for (; count >= kStep; count -= kStep, from += kStep, to += kStep)
    for (Size i = 0; i < kStep; ++i) to[i] = f(from[i]);
  for (Size i = 0; i < count; ++i) to[i] = f(from[i]);
}
template <class To, class A, class B, class F>
void for_each_pair(To* __restrict to, const A* __restrict a, const B* __restrict b, Size count, F f) {
  constexpr Size kStep = 64;
  for (; count >= kStep; count -= kStep, a += kStep, b += kStep, to += kStep)
    for (Size i = 0; i < kStep; ++i) to[i] = f(a[i], b[i]);
  for (Size i = 0; i < count; ++i) to[i] = f(a[i], b[i]);
}
template <class To, class From, class F>
void combine_each_element(To* __restrict to, const From* __restrict from, Size count, F f) {
  constexpr Size kStep = 64;
  for (; count >= kStep; count -= kStep, from += kStep, to += kStep)
    for (Size i = 0; i < kStep; ++i) to[i] = f(to[i], from[i]);
  for (Size i = 0; i < count; ++i) to[i] = f(to[i], from[i]);
}

/// Calls `use` with `apply` for this operation: the choice stands outside of the loop.
template <class A, class Use>
auto by_operation(ReduceOp op, const Use& use) {
  switch (op) {
    case ReduceOp::kProd:
      return use([](A x, A y) { return apply(ReduceOp::kProd, x, y); });
    case ReduceOp::kMin:
      return use([](A x, A y) { return apply(ReduceOp::kMin, x, y); });
    case ReduceOp::kMax:
      return use([](A x, A y) { return apply(ReduceOp::kMax, x, y); });
    default:
      return use([](A x, A y) { return apply(ReduceOp::kSum, x, y); });
  }
}

/// Sets to[i] = from[i], converted.
template <class To, class From>
void convert_all(To* to, const From* from, Size count) {
  if constexpr (std::is_same_v<To, From>)
    std::memcpy(to, from, static_cast<std::size_t>(count) * sizeof(To));
  else if constexpr (std::is_same_v<To, float> && is_vectorised<From>)
    widen(to, from, count);
  else if constexpr (is_vectorised<To> && std::is_same_v<From, float>)
    narrow(to, from, count);
  else
    for_each_element(to, from, count, [](From x) { return tandem::convert<To>(x); });
}

/// Sets to[i] = a[i] (op) b[i].
template <class A, class T>
void combine_all(ReduceOp op, A* to, const T* a, const T* b, Size count) {
  if constexpr (std::is_same_v<A, float> && is_vectorised<T>)
    if (adds(op)) return widen_sum(to, a, b, count);
  by_operation<A>(op, [&](auto operation) {
    for_each_pair(to, a, b, count,
                  [operation](T x, T y) { return operation(tandem::convert<A>(x), tandem::convert<A>(y)); });
  });
}

/// Sets to[i] = to[i] (op) from[i].
template <class A, class T>
void combine_into(ReduceOp op, A* to, const T* from, Size count) {
  if constexpr (std::is_same_v<A, float> && is_vectorised<T>)
    if (adds(op)) return widen_add(to, from, count);
  by_operation<A>(op, [&](auto operation) {
    combine_each_element(to, from, count, [operation](A x, T y) { return operation(x, tandem::convert<A>(y)); });
  });
}

/// Does the same with each element atomically, because PEs may reduce into the same ones at the same time.
template <class T, class A>
void reduce_atomically(ReduceOp op, T* to, const A* from, Size count) {
  for (Size i = 0; i < count; ++i) {
    T old, sum;
    __atomic_load(to + i, &old, __ATOMIC_RELAXED);
    do {
      sum = tandem::convert<T>(apply(op, tandem::convert<A>(old), from[i]));
    } while (!__atomic_compare_exchange(to + i, &old, &sum, false, __ATOMIC_RELAXED, __ATOMIC_RELAXED));
  }
}

/// Declares or defines the loops of one element type and its accumulator.
// NOLINTBEGIN(bugprone-macro-parentheses): neither a type nor `extern template` can stand in parentheses.
#define TANDEM_ELEMENT_LOOPS(DECLARATION, T)                                         \
  DECLARATION void combine_all(ReduceOp, Accumulator<T>*, const T*, const T*, Size); \
  DECLARATION void combine_into(ReduceOp, Accumulator<T>*, const T*, Size);          \
  DECLARATION void reduce_atomically(ReduceOp, T*, const Accumulator<T>*, Size)
#define TANDEM_ALL_ELEMENT_LOOPS(DECLARATION)                  \
  TANDEM_ELEMENT_LOOPS(DECLARATION, float);                    \
  TANDEM_ELEMENT_LOOPS(DECLARATION, f16);                      \
  TANDEM_ELEMENT_LOOPS(DECLARATION, bf16);                     \
  TANDEM_ELEMENT_LOOPS(DECLARATION, fp8_e4m3);                 \
  TANDEM_ELEMENT_LOOPS(DECLARATION, fp8_e5m2);                 \
  TANDEM_ELEMENT_LOOPS(DECLARATION, std::int8_t);              \
  TANDEM_ELEMENT_LOOPS(DECLARATION, std::uint8_t);             \
  TANDEM_ELEMENT_LOOPS(DECLARATION, std::int32_t);             \
  TANDEM_ELEMENT_LOOPS(DECLARATION, std::uint32_t);            \
  TANDEM_ELEMENT_LOOPS(DECLARATION, std::int64_t);             \
  TANDEM_ELEMENT_LOOPS(DECLARATION, std::uint64_t);            \
  TANDEM_ELEMENT_LOOPS(DECLARATION, double);                   \
  DECLARATION void convert_all(float*, const fp8_e4m3*, Size); \
  DECLARATION void convert_all(float*, const fp8_e5m2*, Size); \
  DECLARATION void convert_all(fp8_e4m3*, const float*, Size); \
  DECLARATION void convert_all(fp8_e5m2*, const float*, Size)
// NOLINTEND(bugprone-macro-parentheses)

TANDEM_ALL_ELEMENT_LOOPS(extern template);

}  // namespace tandem::cpu::impl
