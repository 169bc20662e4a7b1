#pragma once
/// Common parts of reducing kernels: load a PE's own values, combine all PEs' values, and finish.
///
/// One rule holds for all: an input is an element of T. Under kPremulSum it is multiplied by its owner's scale and
/// rounded to T before it is combined with others. The result thus does not depend on the PE that combines them.

#include <utility>

#include "tandem/numeric.h"
#include "tandem/reduce_op.h"
#include "tandem/symm.h"

namespace tandem::kernels {

/// Loads the elements `range` of a PE's input for a reduction, still of type T; `scale` is that PE's. Conversion waits
/// for the load, so it is left to the reduction.
template <class T, class Block>
TANDEM_DEVICE auto load_input(Block& block, const T* in, Range range, ReduceOp op, Accumulator<T> scale) {
  auto values = block.template load<T>(in, range);
  if (op != ReduceOp::kPremulSum) return values;
  return values.map([scale](T x) { return convert<T>(premultiply(convert<Accumulator<T>>(x), scale)); });
}

/// Stores the input at the same indices of `to`, unless it is there already (in-place).
template <class T, class Block>
TANDEM_DEVICE void copy_input(Block& block, T* to, const T* in, Range range, ReduceOp op, Accumulator<T> scale) {
  if (to == in && op != ReduceOp::kPremulSum) return;
  for (const Range tile : block.template tiles<T>(range))
    block.store(to, tile, load_input<T>(block, in, tile, op, scale));
}

/// Returns the result, once all PEs' values are in it (kAvg divides).
template <class Values>
TANDEM_DEVICE Values finished(Values values, ReduceOp op, int pes) {
  if (op != ReduceOp::kAvg) return values;
  return values.map([op, pes](auto x) { return finish(op, x, pes); });
}

/// Returns input(0) (op) input(1) (op) ... input(n - 1). Inputs are fragments of T, each loaded while the previous one
/// is awaited.
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

/// Returns the same for all PEs' inputs, finished.
template <class T, class Block, class Input>
TANDEM_DEVICE auto reduce_in_pe_order(Block& block, ReduceOp op, int pes, const Input& input) {
  return finished(reduce_in_order<T>(block, op, pes, input), op, pes);
}

/// Returns the elements `range` of every PE's input, reduced in PE order and finished. `scales` has one word, read
/// under kPremulSum only.
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
