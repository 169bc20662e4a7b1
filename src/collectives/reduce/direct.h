#pragma once
/// Direct reduce: the root reads the inputs of all PEs and sums them.
///
/// Fixed order: in[0] + in[1] + ... + in[n-1], rounded to T once.
/// The root's link carries n-1 times the data. Needs loads by the root from all PEs. In-place allowed at the root.

#include "base/gpu_kernel.h"
#include "collectives/steps/reduce_input.h"
#include "tandem/block.h"

namespace tandem::kernels {

template <class T>
struct ReduceDirect {
  struct Args {
    Symm<const T> in;
    Symm<T> out;
    Symm<Accumulator<T>> scales;  // [block]: this PE's scale, for the root (kPremulSum)
    Signals arrived;              // [block][PE], at the root: that PE's input is in place
    Signals finished;             // [block]: the root has read this PE's input
    Epochs epochs;                // [block]
    ReduceOp op = ReduceOp::kSum;
    int root = 0;
    Size count = 0;
    Accumulator<T> scale = 1;
  };

  template <class Setup>
  static Args prepare(Setup& setup) {
    Args a;
    a.scales = setup.template symmetric<Accumulator<T>>(setup.blocks(), "scales");
    a.arrived = setup.slots("arrived");
    a.finished = setup.signals(setup.blocks(), "finished");
    a.epochs = setup.epochs();
    return a;
  }

  template <class Block>
  TANDEM_DEVICE static void run(Block& block, const Args& a) {
    const Range part = split(a.count, block.count(), 16)[block.index()];
    const Symm<Accumulator<T>> scales = a.scales + block.index();
    const Signals finished = a.finished + block.index();
    const Epoch epoch = block.next_epoch(a.epochs);

    if (a.op == ReduceOp::kPremulSum) block.store_scalar(scales.local(), a.scale);
    block.notify(block.slots(a.arrived) + block.pe(), epoch, a.root);
    if (block.pe() != a.root) {
      block.wait(finished, 1, epoch);
      return;
    }
    block.wait_all(a.arrived, epoch);
    for (const Range tile : block.template tiles<T>(part))
      block.store(a.out.local(), tile, load_inputs<T>(block, a.in, tile, a.op, scales));
    for (const int pe : block.peers_from_self()) block.notify(finished, epoch, pe);
  }
};

TANDEM_GPU_KERNELS(ReduceDirect, 512);

}  // namespace tandem::kernels
