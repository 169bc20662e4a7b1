#pragma once
/// Reduce-scatter by pull: every PE reads its shard from all peers' inputs and sums them, in one step.
///
/// Fixed order: in[0] + in[1] + ... + in[n-1], rounded to T once.
/// Each link carries (n-1)/n of the input. Needs loads from all PEs. In-place allowed: a shard is read by its owner
/// alone.

#include "base/gpu_kernel.h"
#include "collectives/steps/reduce_input.h"
#include "tandem/block.h"

namespace tandem::kernels {

template <class T>
struct ReduceScatterPull {
  struct Args {
    Symm<const T> in;
    Symm<T> out;
    Symm<Accumulator<T>> scales;  // [block]: this PE's scale, for its peers (kPremulSum)
    Signals arrived;              // [block][PE]: that PE's input is in place
    Signals finished;             // [block][PE]: that PE has read what it needs here
    Epochs epochs;                // [block]
    ReduceOp op = ReduceOp::kSum;
    Size count = 0;
    Accumulator<T> scale = 1;
  };

  template <class Setup>
  static Args prepare(Setup& setup) {
    Args a;
    a.scales = setup.template symmetric<Accumulator<T>>(setup.blocks(), "scales");
    a.arrived = setup.slots("arrived");
    a.finished = setup.slots("finished");
    a.epochs = setup.epochs();
    return a;
  }

  template <class Block>
  TANDEM_DEVICE static void run(Block& block, const Args& a) {
    const Range part = split(a.count, block.count(), 16)[block.index()];
    const Symm<const T> shard = a.in + block.pe() * a.count;
    const Symm<Accumulator<T>> scales = a.scales + block.index();
    const Epoch epoch = block.next_epoch(a.epochs);

    if (a.op == ReduceOp::kPremulSum) block.store_scalar(scales.local(), a.scale);
    block.notify_all(a.arrived, epoch);
    block.wait_all(a.arrived, epoch);
    for (const Range tile : block.template tiles<T>(part))
      block.store(a.out.local(), tile, load_inputs<T>(block, shard, tile, a.op, scales));
    block.notify_all(a.finished, epoch);
    block.wait_all(a.finished, epoch);
  }
};

TANDEM_GPU_KERNELS(ReduceScatterPull, 512);

}  // namespace tandem::kernels
