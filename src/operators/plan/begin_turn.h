#pragma once
/// The beginning of a call of plans that take turns (turns.h): all that is between one GEMM and the next.
///
/// A call says nothing when it ends: the next one, of whichever plan, tells the partners that all before it are over,
/// which is soon enough for them, since they need its data before they need the room.

#include "operators/steps/steps.h"

namespace tandem::ops {

/// Counts the call, and waits until all partners are through with this plan's last one.
struct BeginTurn {
  struct Args {
    Signals ended;   // [PE]: calls that it is through with, of all plans that take turns
    Epochs begun;    // those that this PE has begun
    Epoch* last;     // which of them was this plan's last one
    Epoch* epoch;    // this plan's calls
    bool everybody;  // not partners alone: where peers pull what another node sent, its sender must hear of them
  };

  template <class Block>
  TANDEM_DEVICE static void run(Block& block, const Args& a) {
    const Epoch call = block.next_epoch(a.begun);
    const Epoch last = block.load_scalar(a.last);
    const Epoch epoch = block.load_scalar(a.epoch);
    if (a.everybody) {  // side by side
      block.notify_all(a.ended, call - 1);
      block.wait_all(a.ended, last);
    } else {
      for_each_partner(block, [&](int pe) { block.notify(a.ended + block.pe(), call - 1, pe); });
      for_each_partner(block, [&](int pe) { block.wait(a.ended + pe, 1, last); });
    }
    block.store_scalar(a.last, call);
    block.store_scalar(a.epoch, epoch + 1);
  }
};

}  // namespace tandem::ops
