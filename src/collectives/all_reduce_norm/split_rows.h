#pragma once
/// One-shot all_reduce_norm with packets for few rows, each of which is split over several blocks.
///
/// Latency binds calls of few rows, and instructions those of more. A part is one vector for each thread of a small
/// block. So a row takes few steps, and an SM works at several rows. Blocks b * parts to (b + 1) * parts - 1 take
/// the same rows, one after another. Each sends its part to all PEs and adds what arrives, as in one_shot_ll.h. They
/// exchange the sums of squares in packets of their own PE. Fixed order: in[0] + in[1] + ... + in[n-1], and the parts
/// of a row in order.

#include "base/gpu_kernel.h"
#include "collectives/all_reduce_norm/held_row.h"
#include "collectives/all_reduce_norm/row_parts.h"
#include "collectives/steps/reduce_packets.h"

namespace tandem::kernels {

template <class T, class Q, class P>
struct AllReduceNormSplitRows {
  using Packet = P;
  static constexpr bool kEpochFirst = true;
  static constexpr int kThreads = 160;
  static constexpr int kBlocksPerSm = 4;

  struct Args : NormArgs<T, Q> {
    PacketStaging<P> staging;
    PartStaging joins;
    RowParts parts;
  };

  template <class Setup>
  static void prepare(Setup& setup, Args& a) {
    a.parts = row_parts(a.hidden, setup.blocks(), sizeof(T));
    a.staging.bytes = a.parts.elements * Size{sizeof(T)};
    a.staging.each = static_cast<int>(round_up(packets_for<P>(a.staging.bytes), 2));
    a.staging.packets = setup.template symmetric<P>(a.staging.packets_in_all(setup), "packets");
    a.staging.rounds = setup.epochs();
    a.joins.packets = setup.template symmetric<LLPacket>(PartStaging::packets_for(setup.blocks()), "parts").local();
  }

  template <class Block>
  TANDEM_DEVICE static void run(Block& block, const Args& a) {
    const int parts = a.parts.count;
    const int group = block.index() / parts;
    const int groups = block.count() / parts;
    const Range rows = group < groups ? split(a.rows, groups)[group] : Range{};
    const PacketRounds<P, T> rounds(block, a.staging, Pieces{rows.size()});
    if (rows.empty()) return;

    const int number = block.index() - group * parts;
    const Size begin = number * a.parts.elements;
    const Range part{begin, min(begin + a.parts.elements, a.hidden)};
    HeldRow<T, Q, Block, 1> row(block, a, part, a.parts.elements);
    JoinedParts<Block> join(block, a.joins, group, number, parts);
    const auto load = [&](Size round) {
      return block.template load<T>(a.in.local() + (rows.begin + round) * a.hidden, part);
    };
    // One loop holds each step once. Slots are safe for each warp as in PacketRounds::exchange.
    for (Size i = -1; i < rows.size(); ++i) {
      if (const Size next = i + 1; next < rows.size())
        block.template ll_put_peers<T>(rounds.packets(next, block.pe()), load(next), rounds.flag(next));
      if (i < 0) continue;
      const NormPlace place{rows.begin + i, rows.begin + i};
      row.complete(place, [&](int, Range) {
        return reduce_packets<T>(block, load(i), static_cast<const P*>(rounds.packets(i, 0).local()), rounds.stride(),
                                 rounds.flag(i), ReduceOp::kSum);
      });
      join.begin(rounds.round(i), rounds.flag(i));
      row.finish(place, join);
    }
  }
};
template <class T, class Q>
struct AllReduceNormSplitRowsLL : AllReduceNormSplitRows<T, Q, LLPacket> {};
template <class T, class Q>
struct AllReduceNormSplitRowsLL128 : AllReduceNormSplitRows<T, Q, LL128Line> {};

TANDEM_GPU_OUTPUT_KERNELS(AllReduceNormSplitRowsLL, 160);
TANDEM_GPU_OUTPUT_KERNELS(AllReduceNormSplitRowsLL128, 160);

}  // namespace tandem::kernels
