#pragma once
/// One-shot all-reduce: every PE reads all peers' inputs and sums them (Triton-distributed, arXiv 2504.19442).
///
/// The input is copied into staging first. In-place calls then need no second round, and no PE waits at the end.
/// Fixed order: in[0] + in[1] + ... + in[n-1] on every PE, rounded to T once.
/// Each link carries n-1 times the data, in one step. Needs loads from all PEs. In-place allowed.

#include "base/gpu_kernel.h"
#include "collectives/steps/reduce_input.h"
#include "tandem/block.h"

namespace tandem::kernels {

template <class T>
struct AllReduceOneShot {
  struct Args {
    Symm<const T> in;
    Symm<T> out;
    Symm<T> inputs;     // staging, [2][capacity]: this PE's input, by epoch parity
    Size capacity = 0;  // elements of each
    Signals arrived;    // [block][PE]: that PE's input is in its staging
    Epochs epochs;      // [block]
    ReduceOp op = ReduceOp::kSum;
    Size count = 0;
    Accumulator<T> scale = 1;
  };

  template <class Setup>
  static Args prepare(Setup& setup) {
    Args a;
    a.capacity = round_up(setup.max_count(), 16);
    a.inputs = setup.template symmetric<T>(2 * a.capacity, "inputs");
    a.arrived = setup.slots("arrived");
    a.epochs = setup.epochs();
    return a;
  }

  // Two slots suffice: a PE that finished call e+1 has a signal of e+1 from every PE, so every PE had finished e.
  template <class Block>
  TANDEM_DEVICE static void run(Block& block, const Args& a) {
    const Range part = split(a.count, block.count(), 16)[block.index()];
    const Epoch epoch = block.next_epoch(a.epochs);
    const Symm<T> inputs = a.inputs + static_cast<Size>(epoch % 2) * a.capacity;

    copy_input<T>(block, inputs.local(), a.in.local(), part, a.op, a.scale);
    block.notify_all(a.arrived, epoch);
    block.wait_all(a.arrived, epoch);
    for (const Range tile : block.template tiles<T>(part)) {
      block.store(a.out.local(), tile,
                  finished(block.template load_reduce<Accumulator<T>>(inputs, tile, a.op), a.op, block.num_pes()));
    }
  }
};

TANDEM_GPU_KERNELS(AllReduceOneShot, 512);

}  // namespace tandem::kernels
