#pragma once
/// Ring all-reduce (Patarasuk and Yuan 2009): a reduce phase, then a broadcast phase, over n chunks.
///
/// Chunk c travels around the ring from PE c+1 to PE c, which then holds its sum. Fixed order: in[c+1] + in[c+2] + ...
/// + in[c], each partial sum rounded to T as it travels. Each link carries 2 (n-1)/n of the data, in 2 (n-1) steps. It
/// needs put and signal to the next PE, so it works within a node and between nodes. In-place allowed.

#include "base/gpu_kernel.h"
#include "collectives/steps/reduce_ring_steps.h"
#include "tandem/block.h"

namespace tandem::kernels {

template <class T>
struct AllReduceRing {
  struct Args {
    Symm<const T> in;
    Symm<T> out;
    Symm<T> partial;  // staging, count elements: sums under way, each chunk in its place
    Signals ready;    // [block]: the next PE has begun this call, so its buffers may be written
    Signals arrived;  // [block]: chunks delivered by the previous PE; see ring_count
    Epochs epochs;    // [block]
    ReduceOp op = ReduceOp::kSum;
    Size count = 0;
    Accumulator<T> scale = 1;
  };

  template <class Setup>
  static Args prepare(Setup& setup) {
    Args a;
    a.partial = setup.template symmetric<T>(setup.max_count(), "partial");
    a.ready = setup.signals(setup.blocks(), "ready");
    a.arrived = setup.signals(setup.blocks(), "arrived");
    a.epochs = setup.epochs();
    return a;
  }

  template <class Block>
  TANDEM_DEVICE static void run(Block& block, const Args& a) {
    const Epoch epoch = block.next_epoch(a.epochs);
    const Range part = split(a.count, block.count(), 16)[block.index()];
    const RingReduce<T> reduce{a.in, a.partial, a.out.local(), 0, a.arrived + block.index(), a.op, a.scale};
    ring_all_reduce<T>(block, ring_of_team(block), reduce, a.out, a.ready + block.index(), part, epoch);
  }
};

TANDEM_GPU_KERNELS(AllReduceRing, 512);
TANDEM_GPU_BETWEEN_NODES(AllReduceRing);

}  // namespace tandem::kernels
