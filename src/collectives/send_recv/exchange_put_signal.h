#pragma once
/// Exchange: the PEs 2i and 2i+1 swap their bytes with put_signal in both directions at once. An odd last PE copies its
/// own.
///
/// It is the exchange kernel of Penny, an NVSHMEM-style library. Here each block swaps its own part, so that a large
/// swap uses as many blocks as the link needs. It needs put_signal to the peer, so it works within a node and between
/// nodes. Separate buffers. A PE waits for its peer's `ready` of this call before it writes there; MoveKernel explains
/// why that is enough.

#include "base/gpu_kernel.h"
#include "collectives/steps/move.h"
#include "collectives/steps/quiet_at_end.h"

namespace tandem::kernels {

struct ExchangePutSignal : MoveKernel {
  template <class Block>
  TANDEM_DEVICE static void run(Block& block, const Args& a) {
    const int me = block.pe();
    const int peer = me ^ 1;
    const Range part = own_part(block, a.count);
    const std::byte* const from = a.in.local() + part.begin;
    const Symm<std::byte> to = a.out + part.begin;
    const Epoch epoch = block.next_epoch(a.epochs);

    if (peer >= block.num_pes()) {
      block.copy(to.local(), from, part.size());
      return;
    }
    block.notify(block.slots(a.ready) + me, epoch, peer);
    block.wait(block.slots(a.ready) + peer, 1, epoch);
    block.put_signal_nbi(to, from, part.size(), block.slots(a.arrived) + me, epoch, peer);
    block.wait(block.slots(a.arrived) + peer, 1, epoch);
    quiet_at_end(block);
  }
};

TANDEM_GPU_KERNEL(ExchangePutSignal, 512);
TANDEM_GPU_BETWEEN_NODES(ExchangePutSignal);

}  // namespace tandem::kernels
