#pragma once
/// The first step of a call, of one plan or of alternating ones. Pushes by copy engines launch nothing else but GEMMs.
///
/// A call does not signal its end. The next call, of either plan, signals to the peers that all earlier calls are over.
/// That is early enough, because the peers need its data before they need the room.

#include "base/gpu_kernel.h"
#include "operators/steps/steps.h"

namespace tandem::ops {

/// Counts the call, and waits until all peers have released the buffers of this plan's last call.
struct AcquireBuffer {
  struct Args {
    Signals released;  // [PE]: calls that it has finished, of all plans that alternate
    Epochs acquired;   // calls that this PE has started
    Epoch* last;       // number of this plan's last call among them
    Epoch* epoch;      // this plan's calls
    bool all_pes;  // also PEs with which this one exchanges no data: needed if peers pull data that another node sent
  };

  template <class Block>
  TANDEM_DEVICE static void run(Block& block, const Args& a) {
    const Epoch call = block.next_epoch(a.acquired);
    const Epoch last = block.load_scalar(a.last);
    const Epoch epoch = block.load_scalar(a.epoch);
    if (a.all_pes) {  // concurrently
      block.notify_all(a.released, call - 1);
      block.wait_all(a.released, last);
    } else {
      for_each_data_peer(block, [&](int pe) { block.notify(a.released + block.pe(), call - 1, pe); });
      for_each_data_peer(block, [&](int pe) { block.wait(a.released + pe, 1, last); });
    }
    block.store_scalar(a.last, call);
    block.store_scalar(a.epoch, epoch + 1);
  }
};

TANDEM_GPU_STEP(AcquireBuffer);
TANDEM_GPU_BETWEEN_NODES(AcquireBuffer);

}  // namespace tandem::ops
