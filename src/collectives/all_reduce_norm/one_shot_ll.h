#pragma once
/// One-shot all_reduce_norm with packets: every PE sends its rows to all, and each computes all rows.
///
/// Blocks take whole rows. A round is a row that fits registers and staging, else a piece of one. The packets of a
/// round are on their way while the block norms the row of the round before. Peers write packets only, so no buffer has
/// to be symmetric. Fixed order: in[0] + in[1] + ... + in[n-1].

#include "base/gpu_kernel.h"
#include "collectives/all_reduce_norm/held_row.h"
#include "collectives/all_reduce_norm/norm_row.h"
#include "collectives/steps/reduce_packets.h"

namespace tandem::kernels {

template <class T, class Q, class P>
struct AllReduceNormOneShotPackets {
  using Packet = P;
  static constexpr bool kEpochFirst = true;
  static constexpr int kThreads = 512;
  static constexpr bool kKeepsRows = true;

  struct Args : NormArgs<T, Q> {
    PacketStaging<P> staging;
  };

  template <class Setup>
  static void prepare(Setup& setup, Args& a) {
    constexpr Size kBudget = Size{64} << 20, kMostBytes = Size{64} << 10;
    const Size fits = kBudget / (2 * PacketStaging<P>::kSlots * setup.blocks() * setup.pes()) / 16 * 16;
    const Size row = round_up(a.hidden, kScaleGroup) * Size{sizeof(T)};
    a.staging.bytes = max(16, min(row, min(fits, kMostBytes)));
    // Each piece of a row begins with a packet of its own, at a multiple of 16 bytes.
    a.staging.each = static_cast<int>(round_up(packets_for<P>(a.staging.bytes) + kHeldPieces, 2));
    a.staging.packets = setup.template symmetric<P>(a.staging.packets_in_all(setup), "packets");
    a.staging.rounds = setup.epochs();
  }

  template <class Block>
  TANDEM_DEVICE static void run(Block& block, const Args& a) {
    const Range rows = split(a.rows, block.count())[block.index()];
    const Size step = group_step<T>(block, a.staging.bytes / Size{sizeof(T)});
    if (a.hidden <= kHeldPieces * step && a.hidden * Size{sizeof(T)} <= a.staging.bytes)
      run_held(block, a, rows, step);
    else
      run_pieces(block, a, rows, step);
  }

 private:
  // All rounds are alike, so slots are safe for each warp as in PacketRounds::exchange.
  template <class Block>
  TANDEM_DEVICE static void run_held(Block& block, const Args& a, Range rows, Size step) {
    using Row = HeldRow<T, Q, Block, kHeldPieces>;
    const PacketRounds<P, T> rounds(block, a.staging, Pieces{rows.size()});
    if (rows.empty()) return;
    Row row(block, a, step);
    const auto load = [&](Size round, Range piece) {
      return block.template load<T>(a.in.local() + (rows.begin + round) * a.hidden, piece);
    };
    const auto packets = [&](Size round, int owner, int k) {
      return rounds.packets(round, owner) + k * packets_for<P>(step * Size{sizeof(T)});
    };
    // One loop holds each step once, since code of each piece is long.
    for (Size i = -1; i < rows.size(); ++i) {
      if (const Size next = i + 1; next < rows.size())
        for (int k = 0; k < row.pieces(); ++k)
          block.template ll_put_peers<T>(packets(next, block.pe(), k), load(next, row.piece(k)), rounds.flag(next));
      if (i < 0) continue;
      const NormPlace place{rows.begin + i, rows.begin + i};
      row.complete(place, [&](int k, Range piece) {
        return reduce_packets<T>(block, load(i, piece), static_cast<const P*>(packets(i, 0, k).local()),
                                 rounds.stride(), rounds.flag(i), ReduceOp::kSum);
      });
      row.finish(place);
    }
  }

  // Warps without elements in the last piece of a row get no packets of it. So the block synchronises before it sends
  // the next piece, and slots are safe as in PacketRounds::exchange.
  template <class Block>
  TANDEM_DEVICE static void run_pieces(Block& block, const Args& a, Range rows, Size step) {
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
      NormRow<T, Q, Block> norm(block, a, {row, row}, step);
      norm.run(true, [&](Range) {
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
