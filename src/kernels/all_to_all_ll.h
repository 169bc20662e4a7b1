#pragma once
/// Low-latency (LL) all-to-all: packets of 4 bytes of data and a 4-byte flag go to each peer's staging, and are their
/// own signals.
///
/// One trip and no other signal, for twice the bytes: for small sizes. Larger ones go in rounds of
/// `PacketRounds::kBytes` a block. Stores to every PE: one node only. Separate buffers.

#include "kernels/packet_rounds.h"

namespace tandem::kernels {

struct AllToAllLL : PacketKernel {
  template <class Block>
  TANDEM_DEVICE static void run(Block& block, const Args& a) {
    const int me = block.pe();
    const PacketRounds rounds(block, a);
    for (Size i = 0; i < rounds.count(); ++i) {
      const Range piece = rounds.piece(i);
      const Epoch flag = rounds.flag(i);
      for (int pe : block.peers_from_self())
        block.ll_put(rounds.packets(i, me), a.in.local() + pe * a.count + piece.begin, piece.size(), flag, pe);
      block.copy(a.out.local() + me * a.count + piece.begin, a.in.local() + me * a.count + piece.begin, piece.size());
      for (int pe : block.peers_from_self())
        block.store(a.out.local() + pe * a.count, piece,
                    block.template ll_get<std::byte, std::byte>(rounds.packets(i, pe).local(), piece.size(), flag));
    }
  }
};

}  // namespace tandem::kernels
