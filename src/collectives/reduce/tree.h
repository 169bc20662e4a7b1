#pragma once
/// Tree reduce: sums go up a binary tree to the root, in chunks.
///
/// Fixed order: at every PE own + its children's sums (reduce_tree_steps.h), each rounded to T as it travels.
/// Needs put and signal: works within a node and between nodes. In-place allowed at the root.

#include "base/gpu_kernel.h"
#include "collectives/steps/quiet_at_end.h"
#include "collectives/steps/reduce_tree_steps.h"
#include "tandem/block.h"

namespace tandem::kernels {

template <class T>
struct ReduceTree {
  struct Args {
    Symm<const T> in;
    Symm<T> out;
    Symm<T> partial;    // staging, [2][child][capacity]: sums from the children, by epoch parity
    Symm<T> scratch;    // staging, [capacity]: sums on their way to a parent on another node
    Size capacity = 0;  // elements of each
    Signals arrived;    // [block][child]: chunks from that child; see chunk_epoch
    Signals released;   // [block]: the last call whose sums the parent has read
    Epochs epochs;      // [block]
    ReduceOp op = ReduceOp::kSum;
    int root = 0;
    Size count = 0;
    Accumulator<T> scale = 1;
  };

  template <class Setup>
  static Args prepare(Setup& setup) {
    Args a;
    a.capacity = round_up(setup.max_count(), 16);
    a.partial = setup.template symmetric<T>(2 * Tree::kChildren * a.capacity, "partial");
    a.scratch = setup.template symmetric<T>(setup.team().one_node() ? 0 : a.capacity, "scratch");
    a.arrived = setup.signals(Size{setup.blocks()} * Tree::kChildren, "arrived");
    a.released = setup.signals(setup.blocks(), "released");
    a.epochs = setup.epochs();
    return a;
  }

  // Nothing travels down the tree, so a child may be calls ahead of its parent. It writes a slot when all blocks of the
  // parent have released the call before the last, which usually happened long ago.
  template <class Block>
  TANDEM_DEVICE static void run(Block& block, const Args& a) {
    const Tree tree = tree_of(block.team(), block.pe(), a.root);
    const Range part = split(a.count, block.count(), 16)[block.index()];
    const Epoch epoch = block.next_epoch(a.epochs);
    const Symm<T> partial = a.partial + static_cast<Size>(epoch % 2) * Tree::kChildren * a.capacity;

    if (tree.parent >= 0 && epoch > 2) block.wait(a.released, block.count(), epoch - 2);
    const TreeUp<T> upwards{a.in,    a.out.local(), a.scratch.local(),
                            partial, a.capacity,    a.arrived + Size{block.index()} * Tree::kChildren,
                            a.op,    a.scale};
    tree_up<T>(block, tree, upwards, part, epoch, [](Size) {});
    for (const int child : tree.children)
      if (child >= 0) block.notify(a.released + block.index(), epoch, child);
    quiet_at_end(block);
  }
};

TANDEM_GPU_KERNELS(ReduceTree, 512);
TANDEM_GPU_BETWEEN_NODES(ReduceTree);

}  // namespace tandem::kernels
