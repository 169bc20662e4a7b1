#pragma once
/// The two ends of a call of GEMM + ReduceScatter as a chain, one warp each. Staging is written by the next PE alone.

#include "tandem/block.h"

namespace tandem::ops {

struct ChainArgs {
  Signals released;  // the last call that the previous PE is through with, so that its staging may be written again
  Epochs epochs;
  Epoch* of_class;  // calls with as many tiles
};

/// Counts the call and waits for the previous PE.
struct ChainBegin {
  using Args = ChainArgs;
  template <class Block>
  TANDEM_DEVICE static void run(Block& block, const Args& a) {
    const Epoch epoch = block.next_epoch(a.epochs);
    block.fetch_add(a.of_class, Epoch{1}, Scope::kGpu, Order::kRelaxed);
    block.wait(a.released, 1, epoch - 1);
  }
};

/// Tells the next PE that this one is through.
struct ChainEnd {
  using Args = ChainArgs;
  template <class Block>
  TANDEM_DEVICE static void run(Block& block, const Args& a) {
    const Epoch epoch = block.load_scalar(a.epochs.words);
    block.notify(a.released, epoch, (block.pe() + 1) % block.num_pes());
  }
};

}  // namespace tandem::ops
