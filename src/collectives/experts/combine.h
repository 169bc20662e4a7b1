#pragma once
/// Weighted sums of what the experts here made of each token, to the token's owner, which adds the PEs' sums in order.

#include "base/gpu_kernel.h"
#include "collectives/experts/row_chunks.h"
#include "collectives/experts/row_lines.h"

namespace tandem::kernels {

/// `Rows`: the form in which sums travel, RowLines or RowChunks.
template <class T, class Rows>
struct CombineRows {
  using Packet = typename Rows::Packet;
  static constexpr bool kEpochFirst = true;
  static constexpr int kThreads = Rows::kThreads;
  static constexpr int kBlocksPerSm = Rows::kBlocksPerSm;

  struct Args {
    const T* y = nullptr;      // [row of an expert][hidden]
    const T* add = nullptr;    // [token][hidden], or null
    T* out = nullptr;          // [token][hidden]
    const T* zeros = nullptr;  // of a piece, from the host
    Size hidden = 0;
    CallPart part = CallPart::kAll;
    Routing routing;
    Rows rows;
  };

  template <class Block>
  TANDEM_DEVICE static void run(Block& block, const Args& a) {
    const Epoch epoch = a.rows.next_epoch(block, a.part);
    if (a.part != CallPart::kSend) a.rows.announce(block, epoch);
    const RowMember sender = a.rows.sender(block, a.part);
    for (Size round = 0; round < a.rows.rounds(sender); ++round) send(block, a, epoch, sender, round);
    const RowMember receiver = a.rows.receiver(block, a.part);
    const Size own = block.load_scalar(a.routing.tokens() + block.pe());
    for (Size round = 0; round < a.rows.rounds(receiver); ++round) {
      for (const int pe : block.peers_from_self()) a.rows.await(block, receiver, round, own, epoch, pe);
      a.rows.for_own(receiver, round, own, [&](Size token, Range bytes) { add_up(block, a, epoch, token, bytes); });
    }
    if (a.part != CallPart::kSend) a.rows.await_all(block, epoch);
  }

 private:
  template <class Block>
  using Values = decltype(std::declval<Block&>().template load<float>(static_cast<const T*>(nullptr), Range{}));

  TANDEM_DEVICE static Range elements(Range bytes) {
    constexpr std::uint64_t kSize = sizeof(T);  // unsigned, which takes a shift alone
    return {static_cast<Size>(static_cast<std::uint64_t>(bytes.begin) / kSize),
            static_cast<Size>(static_cast<std::uint64_t>(bytes.end) / kSize)};
  }

  template <class Block>
  TANDEM_DEVICE static Values<Block> zeros(Block& block, const Args& a, Range piece) {
    return block.template load<float>(a.zeros, {0, elements(piece).size()});
  }

  template <class Block>
  TANDEM_DEVICE static void send(Block& block, const Args& a, Epoch epoch, const RowMember& member, Size round) {
    const Routing& r = a.routing;
    for (const int pe : block.peers_from_self()) {
      const Size tokens = block.load_scalar(r.tokens() + pe);
      a.rows.for_own(member, round, tokens, [&](Size token, Range bytes) {
        const auto share = share_of(block, r, pe, token, load_ids(block, r, pe, token));
        if (!any_here(share.places)) return;
        for (const Range piece : a.rows.pieces_of(bytes))
          a.rows.template put<T>(block, r, epoch, pe, token, piece, local_sum(block, a, share, piece));
      });
      a.rows.notify(block, member, round, tokens, epoch, pe);
    }
  }

  /// Adds in the order of the token's choices. The loads of several rows are in flight together. A token whose experts
  /// have no row left counts as zeros: its owner waits for a sum.
  template <class Block>
  TANDEM_DEVICE static Values<Block> local_sum(Block& block, const Args& a, const TokenShare<Block>& share,
                                               Range piece) {
    constexpr int kAtOnce = Rows::kRowsAtOnce;
    const std::uint32_t all = rows_here(share.places);
    Values<Block> sum;
    for (std::uint32_t left = all; left != 0;) {
      typename Block::template FragmentOf<T> rows[kAtOnce];
      std::uint32_t next = left;
      for (int u = 0; u < kAtOnce; ++u) {
        if (next == 0) break;
        rows[u] = block.template load<T>(a.y + share.places.at(lowest_bit(next)) * a.hidden, elements(piece));
        next &= next - 1;
      }
      for (int u = 0; u < kAtOnce; ++u) {
        if (left == 0) break;
        const auto values = rows[u].template convert<float>() * share.weights.at(lowest_bit(left));
        sum = left == all ? values.copy() : sum + values;
        left &= left - 1;
      }
    }
    return all == 0 ? zeros(block, a, piece) : sum.copy();
  }

  template <class Block>
  TANDEM_DEVICE static void add_up(Block& block, const Args& a, Epoch epoch, Size token, Range bytes) {
    const Routing& r = a.routing;
    const int me = block.pe();
    const auto ids = load_ids(block, r, me, token);
    const PeSet pes = pes_of(r, ids);
    const auto share = share_of(block, r, me, token, ids);
    const bool is_here = any_here(share.places);
    for (const Range piece : a.rows.pieces_of(bytes)) {
      Values<Block> own;
      if (is_here) own = local_sum(block, a, share, piece).map([](float x) { return convert<float>(convert<T>(x)); });
      Values<Block> total;
      bool is_first = true;
      const auto add = [&](const Values<Block>& values) {
        total = is_first ? values.copy() : total + values;
        is_first = false;
      };
      for (int pe = 0; pe < r.pes; ++pe) {
        if (!pes.has(pe)) continue;
        if (pe != me)
          add(a.rows.template get<float, T>(block, r, epoch, pe, token, piece));
        else if (is_here)
          add(own);
      }
      if (a.add != nullptr) add(block.template load<float>(a.add + token * a.hidden, elements(piece)));
      if (is_first) add(zeros(block, a, piece));
      block.store(a.out + token * a.hidden, elements(piece), total);
    }
  }
};

template <class T>
using CombineByPackets = CombineRows<T, RowLines>;
template <class T>
using CombineByChunks = CombineRows<T, RowChunks>;

TANDEM_GPU_KERNEL(CombineByPackets<bf16>, 128);
TANDEM_GPU_KERNEL(CombineByPackets<f16>, 128);
TANDEM_GPU_KERNEL(CombineByChunks<bf16>, 128);
TANDEM_GPU_KERNEL(CombineByChunks<f16>, 128);

}  // namespace tandem::kernels
