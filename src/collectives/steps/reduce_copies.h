#pragma once
/// Kernels of reductions whose bytes are moved by copy engines.

#include "base/gpu_kernel.h"
#include "collectives/steps/reduce_input.h"
#include "tandem/block.h"

namespace tandem::kernels {

template <class T>
struct CopiedReduceArgs {
  const T* own;                 // this PE's values for its shard
  T* out;                       // place of the sums
  const T* staging;             // [PE][capacity]: the peers' values for this PE's shard
  Size capacity;                // elements of each
  Range range;                  // part of the shard that this launch sums
  Symm<Accumulator<T>> scales;  // [parity of the call]: this PE's scale, for its peers (kPremulSum)
  Signals ready;                // [PE]: that PE has begun this call
  Signals arrived;              // [PE]: that PE's values for the range are in the staging
  Epochs epochs;                // [1]
  ReduceOp op;
  Accumulator<T> scale;
};

/// Signals to the peers that this call has started here, so that the staging and the user's buffers may be written.
/// Waits until it has started everywhere.
template <class T>
struct CopiedReduceBegin {
  using Args = CopiedReduceArgs<T>;
  template <class Block>
  TANDEM_DEVICE static void run(Block& block, const Args& a) {
    const Epoch epoch = block.next_epoch(a.epochs);
    // A peer may still read the last call's.
    if (a.op == ReduceOp::kPremulSum) block.store_scalar(a.scales.local() + epoch % 2, a.scale);
    block.notify_all(a.ready, epoch);
    block.wait_all(a.ready, epoch);
  }
};

/// Sums the range of this PE's shard in PE order, once the peers' values are here. The first kernel has set the epoch.
template <class T>
struct CopiedReduce {
  using Args = CopiedReduceArgs<T>;
  template <class Block>
  TANDEM_DEVICE static void run(Block& block, const Args& a) {
    const Range part = split(a.range, block.count(), 16)[block.index()];
    const Epoch epoch = block.load_scalar(a.epochs.words);
    for (const int pe : block.peers_from_self()) block.wait(a.arrived + pe, 1, epoch);
    for (const Range tile : block.template tiles<T>(part)) {
      const auto input = [&](int pe) {
        const T* const values = pe == block.pe() ? a.own : a.staging + pe * a.capacity;
        const Accumulator<T> scale =
            a.op == ReduceOp::kPremulSum ? block.load_scalar(a.scales.on(pe) + epoch % 2) : Accumulator<T>{1};
        return load_input<T>(block, values, tile, a.op, scale);
      };
      block.store(a.out, tile, reduce_in_pe_order<T>(block, a.op, block.num_pes(), input));
    }
  }
};

TANDEM_GPU_KERNELS(CopiedReduceBegin, 32);
TANDEM_GPU_KERNELS(CopiedReduce, 512);

}  // namespace tandem::kernels
