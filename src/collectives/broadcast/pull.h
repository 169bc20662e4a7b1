#pragma once
/// Broadcast by pull: every PE reads the root's input.
///
/// One step; n-1 times the bytes leave the root, but each PE moves its own copy of them, all at the same time. It needs
/// loads from the root. In-place allowed.
///
/// The root of an in-place call has nothing to copy. It stores the last n-th part of the bytes to each PE whose call is
/// in place too. So all PEs move as many bytes. Such a PE's output is at the symmetric address of the input, so peers
/// still access inputs only. The lowest bit of `ready` carries the root's offer and the PE's answer.

#include "base/gpu_kernel.h"
#include "collectives/steps/move.h"

namespace tandem::kernels {

struct BroadcastPull : MoveKernel {
  template <class Block>
  TANDEM_DEVICE static void run(Block& block, const Args& a) {
    const Range part = own_part(block, a.count);
    const Epoch epoch = block.next_epoch(a.epochs);
    if (block.pe() == a.root)
      give(block, a, part, epoch);
    else
      take(block, a, part, epoch);
  }

 private:
  /// The least bytes of a block that the root shares. An answer takes as long as the copy of some 20 KB, if the root
  /// polls for it.
  static constexpr Size kLeastShared = Size{128} << 10;

  TANDEM_DEVICE static bool is_in_place(const Args& a) { return a.out.local() == a.in.local(); }
  TANDEM_DEVICE static Epoch ready_value(Epoch epoch, bool shares) { return 2 * epoch + (shares ? 1 : 0); }
  /// The part that the root stores.
  template <class Block>
  TANDEM_DEVICE static Range shared_part(const Block& block, Range part) {
    return split(part, block.num_pes(), 16)[block.num_pes() - 1];
  }

  template <class Block>
  TANDEM_DEVICE static void give(Block& block, const Args& a, Range part, Epoch epoch) {
    const bool offers = is_in_place(a) && part.size() >= kLeastShared;
    for (const int pe : block.peers_from_self())
      block.notify(block.slots(a.ready) + block.pe(), ready_value(epoch, offers), pe);
    copy_unless_same(block, a.out.local() + part.begin, a.in.local() + part.begin, part.size());
    if (offers) {
      const Range own = shared_part(block, part);
      for (const int pe : block.peers_from_self()) {
        const Signals answer = block.slots(a.ready) + pe;
        block.wait(answer, 1, ready_value(epoch, false));
        if (!block.signal_test(answer, Cmp::kGe, ready_value(epoch, true))) continue;
        auto* const there = const_cast<std::byte*>(block.remote(a.in, pe));
        block.copy(there + own.begin, a.in.local() + own.begin, own.size());
        block.notify(block.slots(a.arrived) + block.pe(), epoch, pe);
      }
    }
    wait_peers(block, a.arrived, epoch);  // no peer reads the input any more
  }

  template <class Block>
  TANDEM_DEVICE static void take(Block& block, const Args& a, Range part, Epoch epoch) {
    const Signals offer = block.slots(a.ready) + a.root;
    block.wait(offer, 1, ready_value(epoch, false));  // the root's input is complete
    bool shares = false;
    if (block.signal_test(offer, Cmp::kGe, ready_value(epoch, true))) {
      shares = is_in_place(a);
      block.signal_after_reads(block.slots(a.ready) + block.pe(), ready_value(epoch, shares), a.root);
    }
    const Range own{part.begin, shares ? shared_part(block, part).begin : part.end};
    block.copy(a.out.local() + own.begin, block.remote(a.in, a.root) + own.begin, own.size());
    block.signal_after_reads(block.slots(a.arrived) + block.pe(), epoch, a.root);
    if (shares) block.wait(block.slots(a.arrived) + a.root, 1, epoch);
  }
};

TANDEM_GPU_KERNEL(BroadcastPull, 512);

}  // namespace tandem::kernels
