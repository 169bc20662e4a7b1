#pragma once
/// One-shot all-reduce with packets: every PE sends its input to all, as packets that are their own signal (NCCL's LL
/// protocol).
///
/// Fixed order: in[0] + in[1] + ... + in[n-1] on every PE, rounded to T once.
/// Each link carries 2 (n-1) times the data (half of a packet is flag), in one step without any other signal.
/// Needs stores to all PEs. In-place allowed.

#include "kernels/reduce_input.h"
#include "tandem/block.h"

namespace tandem::kernels {

template <class T>
struct AllReduceOneShotLL {
  struct Args {
    Symm<const T> in;
    Symm<T> out;
    Symm<LLPacket> inputs;  // staging, [2][PE][capacity]: everybody's input, by epoch parity
    Size capacity = 0;      // packets of each
    Epochs epochs;          // [block]
    ReduceOp op = ReduceOp::kSum;
    Size count = 0;
    Accumulator<T> scale = 1;
  };

  /// What is sent to every peer by itself is more than the buffer, and packets double it.
  static int suitable_blocks(const Team&, int blocks) { return static_cast<int>(min(4 * blocks, 32)); }

  template <class Setup>
  static Args prepare(Setup& setup) {
    Args a;
    // Even, so that pairs of packets are 16-byte accesses.
    a.capacity = round_up(packets_for<LLPacket>(setup.max_count() * Size{sizeof(T)}), 2);
    a.inputs = setup.template symmetric<LLPacket>(2 * setup.pes() * a.capacity, "inputs");
    a.epochs = setup.epochs();
    return a;
  }

  // Two slots suffice: who has finished call e+1 has packets of e+1 from everybody, so everybody had finished e. A call
  // without elements says nothing to anybody, so it is no call.
  template <class Block>
  TANDEM_DEVICE static void run(Block& block, const Args& a) {
    using A = Accumulator<T>;
    if (a.count == 0) return;
    const int n = block.num_pes();
    const int me = block.pe();
    const Range part = split(a.count, block.count(), 16)[block.index()];
    const Epoch epoch = block.next_epoch(a.epochs);
    const Symm<LLPacket> inputs = a.inputs + static_cast<Size>(epoch % 2) * n * a.capacity;

    for (const Range tile : block.template tiles<T>(part)) {
      const Size at = packets_for<LLPacket>(tile.begin * Size{sizeof(T)});
      const auto own = load_input<T>(block, a.in.local(), tile, a.op, a.scale);
      for (const int pe : block.peers_from_self())
        block.template ll_put_fragment<T>(inputs + (me * a.capacity + at), own, epoch, pe);
    }
    for (const Range tile : block.template tiles<T>(part)) {
      const Size at = packets_for<LLPacket>(tile.begin * Size{sizeof(T)});
      const auto input = [&](int pe) {
        if (pe == me) return load_input<T>(block, a.in.local(), tile, a.op, a.scale);
        return block.template ll_get<A, T>(inputs.local() + pe * a.capacity + at, tile.size(), epoch);
      };
      block.store(a.out.local(), tile, reduce_in_pe_order(block, a.op, n, input));
    }
  }
};

}  // namespace tandem::kernels
