#pragma once
/// Ring reduce-scatter: the reduce phase of the ring all-reduce (Patarasuk and Yuan 2009).
///
/// Shard c travels around the ring from PE c+1 to PE c. Fixed order: in[c+1] + in[c+2] + ... + in[c], each partial sum
/// rounded to T as it travels. Each link carries (n-1)/n of the input, in n-1 steps. It needs put and signal to the
/// next PE, so it works within a node and between nodes. In-place allowed.

#include "base/gpu_kernel.h"
#include "collectives/steps/quiet_at_end.h"
#include "collectives/steps/reduce_ring_steps.h"
#include "tandem/block.h"

namespace tandem::kernels {

template <class T>
struct ReduceScatterRing {
  struct Args {
    Symm<const T> in;
    Symm<T> out;
    Symm<T> partial;  // staging, n * count elements: sums under way, each shard in its place
    Signals ready;    // [block]: the next PE has begun this call, so its staging may be written
    Signals arrived;  // [block]: chunks of shards delivered by the previous PE; see ring_count
    Epochs epochs;    // [block]
    ReduceOp op = ReduceOp::kSum;
    Size count = 0;
    Accumulator<T> scale = 1;
  };

  template <class Setup>
  static Args prepare(Setup& setup) {
    Args a;
    a.partial = setup.template symmetric<T>(setup.pes() * setup.max_count(), "partial");
    a.ready = setup.signals(setup.blocks(), "ready");
    a.arrived = setup.signals(setup.blocks(), "arrived");
    a.epochs = setup.epochs();
    return a;
  }

  template <class Block>
  TANDEM_DEVICE static void run(Block& block, const Args& a) {
    const RingPlace ring = ring_of_team(block);
    const Range part = split(a.count, block.count(), 16)[block.index()];
    const auto shard = [&](int i) {
      const Size begin = (i + ring.size) % ring.size * a.count;
      return Range{begin + part.begin, begin + part.end};
    };
    const Signals ready = a.ready + block.index();
    const Epoch epoch = block.next_epoch(a.epochs);
    const int chunks = ring_chunks(block, ring.size, part.size() * Size{sizeof(T)});
    Epoch counted = ring_count(epoch, ring.size);

    block.notify(ready, epoch, ring.previous);
    block.wait(ready, 1, epoch);
    ring_reduce<T>(block, ring,
                   {a.in, a.partial, a.out.local(), ring.position * a.count, a.arrived + block.index(), a.op, a.scale},
                   shard, chunks, counted);
    quiet_at_end(block);
  }
};

TANDEM_GPU_KERNELS(ReduceScatterRing, 512);
TANDEM_GPU_BETWEEN_NODES(ReduceScatterRing);

}  // namespace tandem::kernels
