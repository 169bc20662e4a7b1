#pragma once
/// Two-shot all-reduce with packets: every PE sends each peer that peer's shard, sums its own, and sends the sum to
/// all.
///
/// Fixed order: in[0] + in[1] + ... + in[n-1], rounded to T once.
/// Each link carries 4 (n-1)/n of the data (half of a packet is flag), in two steps without any other signal.
/// Needs stores to all PEs. In-place allowed: all of the input has left before anything is written.

#include "kernels/reduce_input.h"
#include "tandem/block.h"

namespace tandem::kernels {

template <class T>
struct AllReduceTwoShotLL {
  struct Args {
    Symm<const T> in;
    Symm<T> out;
    Symm<LLPacket> inputs;  // staging, [2][PE][capacity]: this PE's shard of everybody's input, by epoch parity
    Symm<LLPacket> sums;    // staging, [2][PE][capacity]: that PE's sum
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
    const Size shard = split(setup.max_count(), setup.pes(), 16).step();
    a.capacity = packets_for<LLPacket>(shard * Size{sizeof(T)});
    a.inputs = setup.template symmetric<LLPacket>(2 * setup.pes() * a.capacity, "inputs");
    a.sums = setup.template symmetric<LLPacket>(2 * setup.pes() * a.capacity, "sums");
    a.epochs = setup.epochs();
    return a;
  }

  // Two slots suffice: who has finished call e+1 has the sum of a shard in which everybody's packets of e+1 are, so
  // everybody had finished e. A call without elements says nothing to anybody, so it is no call.
  template <class Block>
  TANDEM_DEVICE static void run(Block& block, const Args& a) {
    using A = Accumulator<T>;
    if (a.count == 0) return;
    const int n = block.num_pes();
    const int me = block.pe();
    const Split shards = split(a.count, n, 16);
    const auto part = [&](int pe) { return split(shards[pe], block.count(), 16)[block.index()]; };
    const auto packet = [&](int owner, int slot, Range tile) {
      return slot * a.capacity + packets_for<LLPacket>((tile.begin - shards[owner].begin) * Size{sizeof(T)});
    };
    const Epoch epoch = block.next_epoch(a.epochs);
    const Symm<LLPacket> inputs = a.inputs + static_cast<Size>(epoch % 2) * n * a.capacity;
    const Symm<LLPacket> sums = a.sums + static_cast<Size>(epoch % 2) * n * a.capacity;

    for (const int pe : block.peers_from_self())
      for (const Range tile : block.template tiles<T>(part(pe)))
        block.template ll_put_fragment<T>(inputs + packet(pe, me, tile),
                                          load_input<T>(block, a.in.local(), tile, a.op, a.scale), epoch, pe);

    for (const Range tile : block.template tiles<T>(part(me))) {
      const auto input = [&](int pe) {
        if (pe == me) return load_input<T>(block, a.in.local(), tile, a.op, a.scale);
        return block.template ll_get<A, T>(inputs.local() + packet(me, pe, tile), tile.size(), epoch);
      };
      const auto result = reduce_in_pe_order(block, a.op, n, input);
      for (const int pe : block.peers_from_self())
        block.template ll_put_fragment<T>(sums + packet(me, me, tile), result, epoch, pe);
      block.store(a.out.local(), tile, result);
    }

    for (const int pe : block.peers_from_self())
      for (const Range tile : block.template tiles<T>(part(pe)))
        block.store(a.out.local(), tile,
                    block.template ll_get<A, T>(sums.local() + packet(pe, pe, tile), tile.size(), epoch));
  }
};

}  // namespace tandem::kernels
