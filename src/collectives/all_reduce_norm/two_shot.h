#pragma once
/// Two-shot all_reduce_norm: the owner of a row sums it over all PEs, norms it, and writes the results to all PEs.
///
/// The second shot carries what the call asks for: the output, in fp8 half of its bytes, and the sums unless the
/// residual is sharded. Fixed order: in[0] + in[1] + ... + in[n-1]. A row is read by its owner alone, piece by piece
/// before it is written.

#include "base/gpu_kernel.h"
#include "collectives/all_reduce_norm/norm_row.h"

namespace tandem::kernels {

template <class T, class Q>
struct AllReduceNormTwoShot {
  static constexpr bool kTwoShots = true;

  struct Args : NormArgs<T, Q> {
    Signals arrived;   // [block][PE]: that PE has begun this call: its input is in place, its outputs may be written
    Signals finished;  // [block][PE]: that PE has finished its reads and writes here
    Epochs epochs;     // [block]
  };

  template <class Setup>
  static void prepare(Setup& setup, Args& a) {
    a.arrived = setup.slots("arrived");
    a.finished = setup.slots("finished");
    a.epochs = setup.epochs();
  }

  template <class Block>
  TANDEM_DEVICE static void run(Block& block, const Args& a) {
    const Range own = split(a.rows, block.num_pes())[block.pe()];
    const Range part = split(own, block.count())[block.index()];
    const Size step = group_step<T>(block, a.hidden + kScaleGroup);
    const Epoch epoch = block.next_epoch(a.epochs);

    block.notify_all(a.arrived, epoch);
    block.wait_all(a.arrived, epoch);
    for (Size row = part.begin; row < part.end; ++row) {
      NormRow<true, T, Q, Block> norm(block, a, row, a.sharded_residual ? row - own.begin : row, step);
      norm.run(
          [&](Range piece) { return block.template load_reduce<float>(a.in + row * a.hidden, piece, ReduceOp::kSum); });
    }
    block.notify_all(a.finished, epoch);
    block.wait_all(a.finished, epoch);
  }
};

TANDEM_GPU_OUTPUT_KERNELS(AllReduceNormTwoShot, 512);

}  // namespace tandem::kernels
