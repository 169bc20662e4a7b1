#pragma once
/// The beginning of a call of GEMM + ReduceScatter as a chain, one warp each. Staging is written by the next PE alone.
///
/// A call says nothing when it ends: the next one, of this plan or of the other one that takes turns with it, tells the
/// next PE that all before it are over. That is off the main stream where copies have a stream of their own, so that
/// from one GEMM to the next it is but a step which counts.

#include "tandem/block.h"

namespace tandem::ops {

struct ChainArgs {
  Signals ended;     // calls that the previous PE is through with, of all plans that take turns
  Epochs begun;      // those that this PE has begun
  Epoch* last;       // which of them was this plan's last one
  Epoch* epoch;      // this plan's calls
  Epoch* of_class;   // those with as many tiles
  bool with_copies;  // ChainAwait follows, before them
};

/// Waits until the previous PE's staging of this plan may be written again. A call's own step: those before are over.
template <class Block>
TANDEM_DEVICE void await_staging(Block& block, const ChainArgs& a, Epoch call) {
  block.notify(a.ended, call - 1, (block.pe() + 1) % block.num_pes());
  block.wait(a.ended, 1, block.load_scalar(a.last));
  block.store_scalar(a.last, call);
}

/// Counts the call; where the GEMM itself stores to the previous PE, waits for it.
struct ChainBegin {
  using Args = ChainArgs;
  template <class Block>
  TANDEM_DEVICE static void run(Block& block, const Args& a) {
    const Epoch call = block.next_epoch(a.begun);
    block.fetch_add(a.epoch, Epoch{1}, Scope::kGpu, Order::kRelaxed);
    block.fetch_add(a.of_class, Epoch{1}, Scope::kGpu, Order::kRelaxed);
    if (!a.with_copies) await_staging(block, a, call);
  }
};

/// Else the copies do.
struct ChainAwait {
  using Args = ChainArgs;
  template <class Block>
  TANDEM_DEVICE static void run(Block& block, const Args& a) {
    await_staging(block, a, block.load_scalar(a.begun.words));
  }
};

}  // namespace tandem::ops
