#pragma once
/// What every reducing kernel does with values: take a PE's own, take everybody's, finish.
///
/// One rule for all: an input is an element of T. Under kPremulSum its owner's scale is multiplied in and the product
/// rounded to T before it meets others, whoever does it, so that it makes no difference on which PE values meet.

#include <utility>

#include "tandem/numeric.h"
#include "tandem/reduce_op.h"
#include "tandem/symm.h"

namespace tandem::kernels {

/// Elements `range` of a PE's input as they meet others, still of type T; `scale` is that PE's. Whoever converts them
/// waits for them, so that is left until they meet.
template <class T, class Block>
TANDEM_DEVICE auto load_input(Block& block, const T* in, Range range, ReduceOp op, Accumulator<T> scale) {
  auto values = block.template load<T>(in, range);
  if (op != ReduceOp::kPremulSum) return values;
  return values.map([scale](T x) { return convert<T>(premultiply(convert<Accumulator<T>>(x), scale)); });
}

/// Stores the input at the same indices of `to`; nothing is done where it is there as it is (in-place).
template <class T, class Block>
TANDEM_DEVICE void copy_input(Block& block, T* to, const T* in, Range range, ReduceOp op, Accumulator<T> scale) {
  if (to == in && op != ReduceOp::kPremulSum) return;
  for (const Range tile : block.template tiles<T>(range))
    block.store(to, tile, load_input<T>(block, in, tile, op, scale));
}

/// The result, once all PEs' values are in it (kAvg divides).
template <class Values>
TANDEM_DEVICE Values finished(Values values, ReduceOp op, int pes) {
  if (op != ReduceOp::kAvg) return values;
  return values.map([op, pes](auto x) { return finish(op, x, pes); });
}

/// input(0) (op) input(1) (op) ... input(n - 1): fragments of T, each under way when the one before it is waited for.
template <class T, class Block, class Input>
TANDEM_DEVICE auto reduce_in_order(Block& block, ReduceOp op, int n, const Input& input) {
  using A = Accumulator<T>;
  auto next = input(0);
  auto sum = decltype(next.template convert<A>())();
  for (int i = 1; i <= n; ++i) {
    auto values = std::move(next);  // NOLINT(bugprone-use-after-move): it was set again, if there is one more
    if (i < n) next = input(i);
    sum = i == 1 ? values.template convert<A>() : block.combine(op, sum, values.template convert<A>());
  }
  return sum;
}

/// The same of all PEs' inputs, finished.
template <class T, class Block, class Input>
TANDEM_DEVICE auto reduce_in_pe_order(Block& block, ReduceOp op, int pes, const Input& input) {
  return finished(reduce_in_order<T>(block, op, pes, input), op, pes);
}

/// Elements `range` of every PE's input, reduced in PE order and finished. `scales`: one word, read under kPremulSum
/// only.
template <class T, class Block>
TANDEM_DEVICE auto load_inputs(Block& block, Symm<const T> in, Range range, ReduceOp op, Symm<Accumulator<T>> scales) {
  using A = Accumulator<T>;
  if (op != ReduceOp::kPremulSum) return finished(block.template load_reduce<A>(in, range, op), op, block.num_pes());
  const auto input = [&](int pe) {
    return load_input<T>(block, in.on(pe), range, op, block.load_scalar(scales.on(pe)));
  };
  return reduce_in_pe_order<T>(block, op, block.num_pes(), input);
}

}  // namespace tandem::kernels
