#pragma once
/// One-shot all_reduce_norm with packets: every PE sends its rows to all, and each computes all rows.
///
/// Blocks take whole rows, in rounds of a piece. The row that a block norms overlaps the packets of the next piece.
/// Peers write packets only, so no buffer has to be symmetric. Fixed order: in[0] + in[1] + ... + in[n-1].

#include "base/gpu_kernel.h"
#include "collectives/all_reduce_norm/norm_row.h"
#include "collectives/steps/reduce_packets.h"

namespace tandem::kernels {

template <class T, class Q, class P>
struct AllReduceNormOneShotPackets {
  using Packet = P;
  static constexpr bool kEpochFirst = true;
  static constexpr bool kTwoShots = false;

  struct Args : NormArgs<T, Q> {
    PacketStaging<P> staging;
  };

  template <class Setup>
  static void prepare(Setup& setup, Args& a) {
    constexpr Size kMostBytes = Size{64} << 10;
    const Size row = round_up(a.hidden, kScaleGroup) * Size{sizeof(T)};
    a.staging = PacketStaging<P>::of(setup, setup.blocks() * min(row, kMostBytes));
  }

  // Warps without elements in the last piece of a row get no packets of it. So the block synchronises before it sends
  // the next piece, and slots are safe as in PacketRounds::exchange.
  template <class Block>
  TANDEM_DEVICE static void run(Block& block, const Args& a) {
    const Range rows = split(a.rows, block.count())[block.index()];
    const Size step = group_step<T>(block, a.staging.bytes / Size{sizeof(T)});
    const Size per_row = ceil_div(a.hidden, step);
    const PacketRounds<P, T> rounds(block, a.staging, Pieces{rows.size() * per_row});
    Size sent = 0;
    Size received = 0;
    const auto load = [&](Size round) {
      const Size begin = round % per_row * step;
      return block.template load<T>(a.in.local() + (rows.begin + round / per_row) * a.hidden,
                                    {begin, min(begin + step, a.hidden)});
    };
    const auto send = [&] {
      if (sent == rounds.count()) return;
      if (sent > 0) block.sync();
      block.template ll_put_peers<T>(rounds.packets(sent, block.pe()), load(sent), rounds.flag(sent));
      ++sent;
    };
    send();
    for (Size row = rows.begin; row < rows.end; ++row) {
      NormRow<false, T, Q, Block> norm(block, a, row, row, step);
      norm.run([&](Range) {
        send();
        const Size i = received++;
        return reduce_packets<T>(block, load(i), static_cast<const P*>(rounds.packets(i, 0).local()), rounds.stride(),
                                 rounds.flag(i), ReduceOp::kSum);
      });
    }
  }
};
template <class T, class Q>
struct AllReduceNormOneShotLL : AllReduceNormOneShotPackets<T, Q, LLPacket> {};
template <class T, class Q>
struct AllReduceNormOneShotLL128 : AllReduceNormOneShotPackets<T, Q, LL128Line> {};

TANDEM_GPU_OUTPUT_KERNELS(AllReduceNormOneShotLL, 512);
TANDEM_GPU_OUTPUT_KERNELS(AllReduceNormOneShotLL128, 512);

}  // namespace tandem::kernels
