#pragma once
/// Sums within a node, for algorithms that go on between nodes.

#include "collectives/steps/reduce_input.h"
#include "tandem/block.h"

namespace tandem::kernels {

/// Notifies the `m` PEs of a node from `first` on.
template <class Block>
TANDEM_DEVICE void notify_node(Block& block, Signals words, int first, int m, Epoch epoch) {
  for (int pe = first; pe < first + m; ++pe) block.notify(block.slots(words) + block.pe(), epoch, pe);
}

/// Computes to[part] = the sum of in[part] of the `m` PEs of a node from `first` on, in PE order, rounded to T.
template <class T, class Block>
TANDEM_DEVICE void sum_within_node(Block& block, Symm<const T> in, Range part, T* to, int first, int m, ReduceOp op,
                                   Symm<Accumulator<T>> scales, Accumulator<T> own_scale) {
  for (const Range tile : block.template tiles<T>(part)) {
    const auto input = [&](int i) {
      const int pe = first + i;
      const auto scale = op == ReduceOp::kPremulSum ? block.load_scalar(scales.on(pe)) : own_scale;
      return load_input<T>(block, in.on(pe), tile, op, scale);
    };
    block.store(to, tile, reduce_in_order<T>(block, op, m, input));
  }
}

/// Returns the sum of a tile over the nodes, in their order, finished for all PEs. This node's values are at `own`,
/// those of node n at inbox + n * capacity.
template <class T, class Block>
TANDEM_DEVICE auto sum_over_nodes(Block& block, const T* own, const T* inbox, Size capacity, Range tile, ReduceOp op) {
  using A = Accumulator<T>;
  const int node = block.pe() / block.team().node_size;
  const auto sum = [&](int from) { return block.template load<A>(from == node ? own : inbox + from * capacity, tile); };
  auto total = sum(0);
  for (int from = 1; from < block.team().nodes(); ++from) total = block.combine(op, total, sum(from));
  return finished(std::move(total), op, block.num_pes());
}

}  // namespace tandem::kernels
