#pragma once
/// Tree all-reduce: sums go up a binary tree, results down, in chunks and in both directions at once.
///
/// Fixed order: at every PE own + its children's sums (reduce_tree_steps.h), each rounded to T as it travels.
/// About 2 log2(n) steps for the first chunk; crosses between nodes once up and once down a node.
/// Needs put and signal: works within a node and between nodes. In-place allowed.

#include "base/gpu_kernel.h"
#include "collectives/steps/quiet_at_end.h"
#include "collectives/steps/reduce_tree_steps.h"
#include "tandem/block.h"

namespace tandem::kernels {

template <class T>
struct AllReduceTree {
  static constexpr int kLeastThreads = 512;  // half of them for each direction

  struct Args {
    Symm<const T> in;
    Symm<T> out;        // holds this PE's sum until its parent on another node has it
    Symm<T> partial;    // staging, [child][capacity]: sums from the children
    Size capacity = 0;  // elements of each
    Signals arrived;    // [block][child]: chunks from that child; see chunk_epoch
    Signals done;       // [block]: chunks of the result in `out`
    Epochs epochs;      // [block]
    ReduceOp op = ReduceOp::kSum;
    Size count = 0;
    Accumulator<T> scale = 1;
  };

  template <class Setup>
  static Args prepare(Setup& setup) {
    Args a;
    a.capacity = round_up(setup.max_count(), 16);
    a.partial = setup.template symmetric<T>(Tree::kChildren * a.capacity, "partial");
    a.arrived = setup.signals(Size{setup.blocks()} * Tree::kChildren, "arrived");
    a.done = setup.signals(setup.blocks(), "done");
    a.epochs = setup.epochs();
    return a;
  }

  // One slot for each child suffices. A child's call ends with the result, which contains its own values, so these have
  // been read. A child's output may be written when its chunk has come up, because it has then started this call.
  template <class Block>
  TANDEM_DEVICE static void run(Block& block, const Args& a) {
    const Tree tree = tree_of(block.team(), block.pe(), 0);
    const Range part = split(a.count, block.count(), 16)[block.index()];
    const Epoch epoch = block.next_epoch(a.epochs);
    const Signals done = a.done + block.index();

    const auto up = [&](auto& role) {
      const TreeUp<T> upwards{a.in,      a.out.local(), a.out.local(),
                              a.partial, a.capacity,    a.arrived + Size{block.index()} * Tree::kChildren,
                              a.op,      a.scale};
      tree_up<T>(role, tree, upwards, part, epoch,
                 [&](Size index) { role.notify(done, chunk_epoch(epoch, index), block.pe()); });
    };
    const auto down = [&](auto& role) {
      Size index = 0;
      for (const Range chunk : tree_chunks<T>(part)) {
        const Epoch there = chunk_epoch(epoch, index++);
        role.wait(done, 1, there);
        for (const int child : tree.children)
          if (child >= 0) put_counted<T>(role, a.out, a.out.local(), chunk, done, there, child);
      }
    };
    block.template parallel<8, 8>(up, down);
    quiet_at_end(block);
  }
};

TANDEM_GPU_KERNELS(AllReduceTree, 512);
TANDEM_GPU_BETWEEN_NODES(AllReduceTree);

}  // namespace tandem::kernels
