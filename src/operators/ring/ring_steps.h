#pragma once
/// The first step of a call of GEMM + ReduceScatter as a ring, in kernels of one warp. Only the next PE writes staging.
///
/// A call does not signal its end. The next call signals to the next PE that all earlier calls are over. It is a call
/// of this plan or of the one with which it alternates. If copies have their own stream, that happens off the main
/// stream. Only a counting step then separates one GEMM from the next.

#include "base/gpu_kernel.h"
#include "tandem/block.h"

namespace tandem::ops {

struct RingArgs {
  Signals released;  // calls that the previous PE has finished, of all plans that alternate
  Epochs acquired;   // calls that this PE has started
  Epoch* last;       // number of this plan's last call among them
  Epoch* epoch;      // this plan's calls
  Epoch* of_class;   // calls with the same number of tiles
  bool with_copies;  // RingAwait follows, before the copies
};

/// Waits until the previous PE's staging of this plan may be written again. All calls before `call` are over on this
/// PE.
template <class Block>
TANDEM_DEVICE void await_staging(Block& block, const RingArgs& a, Epoch call) {
  block.notify(a.released, call - 1, (block.pe() + 1) % block.num_pes());
  block.wait(a.released, 1, block.load_scalar(a.last));
  block.store_scalar(a.last, call);
}

/// Counts the call. If the GEMM itself stores to the previous PE, it also waits for it.
struct RingBegin {
  using Args = RingArgs;
  template <class Block>
  TANDEM_DEVICE static void run(Block& block, const Args& a) {
    const Epoch call = block.next_epoch(a.acquired);
    block.fetch_add(a.epoch, Epoch{1}, Scope::kGpu, Order::kRelaxed);
    block.fetch_add(a.of_class, Epoch{1}, Scope::kGpu, Order::kRelaxed);
    if (!a.with_copies) await_staging(block, a, call);
  }
};

/// Waits for the previous PE on the stream of the copies.
struct RingAwait {
  using Args = RingArgs;
  template <class Block>
  TANDEM_DEVICE static void run(Block& block, const Args& a) {
    await_staging(block, a, block.load_scalar(a.acquired.words));
  }
};

TANDEM_GPU_STEP(RingBegin);
TANDEM_GPU_STEP(RingAwait);
TANDEM_GPU_BETWEEN_NODES(RingBegin);

}  // namespace tandem::ops
