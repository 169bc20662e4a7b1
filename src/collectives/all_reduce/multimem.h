#pragma once
/// One-shot all-reduce through the switch: `multimem` loads return the sum over all PEs' staging (PTX ISA
/// `multimem.ld_reduce`).
///
/// Fixed order: the switch's on a GPU, the same for all PEs; PE order in the simulator. Rounded to T once.
/// Each PE's port carries the data once out and once in. Needs multicast. In-place allowed.

#include "base/gpu_kernel.h"
#include "collectives/all_reduce/one_shot.h"
#include "collectives/steps/reduce_input.h"
#include "tandem/block.h"

namespace tandem::kernels {

template <class T>
struct AllReduceMultimem {
  using Args = typename AllReduceOneShot<T>::Args;

  template <class Setup>
  static Args prepare(Setup& setup) {
    return AllReduceOneShot<T>::prepare(setup);
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
      block.store(
          a.out.local(), tile,
          finished(block.template multimem_load_reduce<Accumulator<T>>(inputs, tile, a.op), a.op, block.num_pes()));
    }
  }
};

TANDEM_SIMULATED_KERNELS(AllReduceMultimem);

}  // namespace tandem::kernels
