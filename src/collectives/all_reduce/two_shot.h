#pragma once
/// Two-shot all-reduce: every PE sums its own shard over all PEs and writes the sum to all.
///
/// Fixed order: in[0] + in[1] + ... + in[n-1], rounded to T once.
/// Each link carries 2 (n-1)/n of the data, in two steps. Needs loads from and stores to all PEs. In-place allowed: a
/// shard is read by its owner alone, tile by tile before it is written.

#include "base/gpu_kernel.h"
#include "collectives/steps/reduce_input.h"
#include "tandem/block.h"

namespace tandem::kernels {

template <class T>
struct AllReduceTwoShot {
  struct Args {
    Symm<const T> in;
    Symm<T> out;
    Symm<Accumulator<T>> scales;  // [block]: this PE's scale, for its peers (kPremulSum)
    Signals arrived;   // [block][PE]: that PE has begun this call: its input is in place, its output may be written
    Signals finished;  // [block][PE]: that PE has finished its reads and writes here
    Epochs epochs;     // [block]
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
    const Range shard = split(a.count, block.num_pes(), 16)[block.pe()];
    const Range part = split(shard, block.count(), 16)[block.index()];
    const Symm<Accumulator<T>> scales = a.scales + block.index();
    const Epoch epoch = block.next_epoch(a.epochs);

    if (a.op == ReduceOp::kPremulSum) block.store_scalar(scales.local(), a.scale);
    block.notify_all(a.arrived, epoch);
    block.wait_all(a.arrived, epoch);
    for (const Range tile : block.template tiles<T>(part)) {
      const auto sum = load_inputs<T>(block, a.in, tile, a.op, scales);
      for (const int pe : block.pes_from_self()) block.store(a.out.on(pe), tile, sum);
    }
    block.notify_all(a.finished, epoch);
    block.wait_all(a.finished, epoch);
  }
};

TANDEM_GPU_KERNELS(AllReduceTwoShot, 512);

}  // namespace tandem::kernels
