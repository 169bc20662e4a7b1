#pragma once
/// A binary tree over the PEs of a team with one crossing for each node, and the upward phase in it.

#include "collectives/steps/chunk_epoch.h"
#include "collectives/steps/put_counted.h"
#include "collectives/steps/reduce_input.h"
#include "tandem/block.h"
#include "tandem/signal.h"

namespace tandem::kernels {

/// Within each node it is a binary heap over local indices. The heaps' roots form a binary heap over nodes. The node
/// and the local index of `root` count as 0.
struct Tree {
  static constexpr int kChildren = 4;  ///< two within the node, then two nodes
  int parent = -1;                     ///< -1: the root
  int slot = 0;                        ///< index among the parent's children
  int children[kChildren] = {-1, -1, -1, -1};
  int within = 0;  ///< children within the node
  int below = 0;   ///< children that are other nodes

  /// Returns the slot of child i, in ascending order.
  TANDEM_DEVICE constexpr int slot_of(int i) const { return i < within ? i : 2 + i - within; }
};

TANDEM_DEVICE constexpr Tree tree_of(const Team& team, int pe, int root) {
  const int locals = team.node_size;
  const int nodes = team.nodes();
  const int node = (pe / locals - root / locals + nodes) % nodes;
  const int local = (pe % locals - root % locals + locals) % locals;
  const auto pe_of = [&](int of_node, int of_local) {
    return (of_node + root / locals) % nodes * locals + (of_local + root % locals) % locals;
  };
  Tree tree;
  for (int i = 0; i < 2; ++i) {
    if (2 * local + 1 + i < locals) tree.children[tree.within++] = pe_of(node, 2 * local + 1 + i);
    if (local == 0 && 2 * node + 1 + i < nodes) tree.children[2 + tree.below++] = pe_of(2 * node + 1 + i, 0);
  }
  if (local > 0) {
    tree.parent = pe_of(node, (local - 1) / 2);
    tree.slot = (local - 1) % 2;
  } else if (node > 0) {
    tree.parent = pe_of((node - 1) / 2, 0);
    tree.slot = 2 + (node - 1) % 2;
  }
  return tree;
}

/// The unit of a tree's pipeline, small enough that the levels of a tree work concurrently.
template <class T>
TANDEM_DEVICE Tiles tree_chunks(Range part) {
  constexpr Size kBytes = Size{128} << 10;
  return {part, chunk_step(part.size(), kBytes / Size{sizeof(T)})};
}

template <class T>
struct TreeUp {
  Symm<const T> in;
  T* result;        // at the root: destination of the sums
  T* scratch;       // elsewhere: holds a sum before a put to a parent on another node
  Symm<T> partial;  // this call's staging, [child][capacity]: sums from the children
  Size capacity;
  Signals arrived;  // this block's words, [child]
  ReduceOp op;
  Accumulator<T> scale;
};

/// Sums travel from the leaves to the root, chunk by chunk: own + children in the order of their slots, rounded to T at
/// every PE. At the root `on_chunk(index)` is called when a chunk's result is stored. It ends before this PE's puts are
/// complete.
template <class T, class Block, class OnChunk>
TANDEM_DEVICE void tree_up(Block& block, const Tree& tree, const TreeUp<T>& a, Range part, Epoch epoch,
                           const OnChunk& on_chunk) {
  using A = Accumulator<T>;
  const bool is_root = tree.parent < 0;
  const int children = tree.within + tree.below;
  const Symm<T> above = a.partial + tree.slot * a.capacity;
  T* const direct = is_root ? a.result : block.remote(above, tree.parent);
  T* const to = direct != nullptr ? direct : a.scratch;
  Size index = 0;
  for (const Range chunk : tree_chunks<T>(part)) {
    for (int slot = 0; slot < Tree::kChildren; ++slot)
      if (tree.children[slot] >= 0) block.wait(a.arrived + slot, 1, chunk_epoch(epoch, index));
    for (const Range tile : block.template tiles<T>(chunk)) {
      const auto from_child = [&](int i) {
        return block.template load<T>(a.partial.local() + tree.slot_of(i) * a.capacity, tile);
      };
      const auto sum_of = [&] {
        const auto own_input = [&] { return load_input<T>(block, a.in.local(), tile, a.op, a.scale); };
        if (children == 0) return own_input().template convert<A>();
        const auto first = from_child(0);  // both are under way: see ring_sum
        const auto own = own_input();
        return block.combine(a.op, own.template convert<A>(), first.template convert<A>());
      };
      auto sum = sum_of();
      for (int i = 1; i < children; ++i) sum = block.combine(a.op, sum, from_child(i).template convert<A>());
      block.store(to, tile, is_root ? finished(std::move(sum), a.op, block.num_pes()) : std::move(sum));
    }
    const Epoch there = chunk_epoch(epoch, index);
    if (is_root)
      on_chunk(index);
    else if (direct != nullptr)
      block.notify(a.arrived + tree.slot, there, tree.parent);
    else
      put_counted<T>(block, above, a.scratch, chunk, a.arrived + tree.slot, there, tree.parent);
    ++index;
  }
}

}  // namespace tandem::kernels
