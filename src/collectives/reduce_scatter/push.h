#pragma once
/// Reduce-scatter by push: every PE sends each peer that peer's shard of its input. The owner sums the shards.
///
/// Fixed order: in[0] + in[1] + ... + in[n-1], rounded to T once.
/// Each link carries (n-1)/n of the input, in one step.
/// Needs put and signal to all PEs: works within a node and between nodes. In-place allowed.

#include "base/gpu_kernel.h"
#include "collectives/steps/quiet_at_end.h"
#include "collectives/steps/reduce_input.h"
#include "tandem/block.h"

namespace tandem::kernels {

template <class T>
struct ReduceScatterPush {
  struct Args {
    Symm<const T> in;
    Symm<T> out;
    Symm<T> inbox;      // staging, [2][PE][capacity]: this PE's shard of every PE's input, by epoch parity
    Symm<T> outgoing;   // [capacity]: premultiplied values on their way to another node
    Size capacity = 0;  // elements of each
    Signals arrived;    // [block][PE]: that PE's values are in the inbox
    Epochs epochs;      // [block]
    ReduceOp op = ReduceOp::kSum;
    Size count = 0;
    Accumulator<T> scale = 1;
  };

  template <class Setup>
  static Args prepare(Setup& setup) {
    Args a;
    a.capacity = round_up(setup.max_count(), 16);
    a.inbox = setup.template symmetric<T>(2 * setup.pes() * a.capacity, "inbox");
    a.outgoing = setup.template symmetric<T>(setup.team().one_node() ? 0 : a.capacity, "outgoing");
    a.arrived = setup.slots("arrived");
    a.epochs = setup.epochs();
    return a;
  }

  // Two slots suffice: a PE that finished call e+1 has a signal of e+1 from every PE, so every PE had finished e.
  template <class Block>
  TANDEM_DEVICE static void run(Block& block, const Args& a) {
    const int me = block.pe();
    const Range part = split(a.count, block.count(), 16)[block.index()];
    const Epoch epoch = block.next_epoch(a.epochs);
    const Symm<T> inbox = a.inbox + static_cast<Size>(epoch % 2) * block.num_pes() * a.capacity;

    // Within a node one release covers all peers. Separate ones would each wait for the stores before them.
    const bool one_node = block.team().one_node();
    if (!one_node) block.notify(block.slots(a.arrived) + me, epoch, me);
    for (const int pe : block.peers_from_self()) {
      if (one_node)
        copy_input<T>(block, (inbox + me * a.capacity).on(pe), a.in.local() + pe * a.count, part, a.op, a.scale);
      else
        send(block, a, inbox, part, epoch, pe);
    }
    if (one_node) block.notify_all(a.arrived, epoch);
    block.wait_all(a.arrived, epoch);
    for (const Range tile : block.template tiles<T>(part)) {
      const auto input = [&](int pe) {
        const bool is_own = pe == me;
        const T* const values = is_own ? a.in.local() + me * a.count : inbox.local() + pe * a.capacity;
        return load_input<T>(block, values, tile, a.op, is_own ? a.scale : Accumulator<T>{1});
      };
      block.store(a.out.local(), tile, reduce_in_pe_order<T>(block, a.op, block.num_pes(), input));
    }
    quiet_at_end(block);
  }

 private:
  template <class Block>
  TANDEM_DEVICE static void send(Block& block, const Args& a, Symm<T> inbox, Range part, Epoch epoch, int pe) {
    const T* const shard = a.in.local() + pe * a.count;
    const Symm<T> slot = inbox + block.pe() * a.capacity;
    const Signals arrived = block.slots(a.arrived) + block.pe();
    if (T* const direct = block.remote(slot, pe)) {
      copy_input<T>(block, direct, shard, part, a.op, a.scale);
      block.notify(arrived, epoch, pe);
    } else if (a.op == ReduceOp::kPremulSum) {
      copy_input<T>(block, a.outgoing.local(), shard, part, a.op, a.scale);
      block.put_signal(slot + part.begin, a.outgoing.local() + part.begin, part.size(), arrived, epoch, pe);
    } else {
      block.put_signal_nbi(slot + part.begin, shard + part.begin, part.size(), arrived, epoch, pe);
    }
  }
};

TANDEM_GPU_KERNELS(ReduceScatterPush, 512);
TANDEM_GPU_BETWEEN_NODES(ReduceScatterPush);

}  // namespace tandem::kernels
