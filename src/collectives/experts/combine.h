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
    const RowMember sender = Rows::sender(block, a.part);
    for (Size round = 0; round < a.rows.rounds(sender); ++round) send(block, a, epoch, sender, round);
    const RowMember receiver = Rows::receiver(block, a.part);
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
    return {bytes.begin / Size{sizeof(T)}, bytes.end / Size{sizeof(T)}};
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
        const Share share = share_of(block, r, pe, token, load_ids(block, r, pe, token));
        if (!share.is_here) return;
        for (const Range piece : a.rows.pieces_of(bytes))
          a.rows.template put<T>(block, r, epoch, pe, token, piece, local_sum(block, a, share, piece));
      });
      a.rows.notify(block, member, round, tokens, epoch, pe);
    }
  }

  /// The rows of a token here, and their weights.
  struct Share {
    bool is_here = false;  // whether one of its experts is here, which may have had no room
    RowList rows;
    Choices<float> weights;
  };
  template <class Block>
  TANDEM_DEVICE static Share share_of(Block& block, const Routing& r, int pe, Size token,
                                      const Choices<std::int32_t>& ids) {
    const auto places = load_places(block, r, pe, token, ids);
    const auto weights = load_choices(block, static_cast<const float*>(r.weights(pe) + token * r.top_k), r.top_k, 0.0F);
    Share share{.is_here = any_here(places), .rows = {}, .weights = {}};
    for (int k = 0; k < kMostTopK; ++k) {
      if (places.of[k] < 0) continue;
      share.rows.of.of[share.rows.count] = places.of[k];
      share.weights.of[share.rows.count++] = weights.of[k];
    }
    return share;
  }

  /// Adds in the order of the token's choices. The loads of several rows are in flight together. A token whose experts
  /// have no row left counts as zeros: its owner waits for a sum.
  template <class Block>
  TANDEM_DEVICE static Values<Block> local_sum(Block& block, const Args& a, const Share& share, Range piece) {
    constexpr int kAtOnce = 4;
    Values<Block> sum;
    for (int first = 0; first < share.rows.count; first += kAtOnce) {
      typename Block::template FragmentOf<T> rows[kAtOnce];
      for (int u = 0; u < kAtOnce; ++u)
        if (first + u < share.rows.count)
          rows[u] = block.template load<T>(a.y + share.rows.of.of[first + u] * a.hidden, elements(piece));
      for (int u = 0; u < kAtOnce; ++u) {
        if (first + u >= share.rows.count) break;
        const auto values = rows[u].template convert<float>() * share.weights.of[first + u];
        sum = first + u == 0 ? values.copy() : sum + values;
      }
    }
    return share.rows.count == 0 ? zeros(block, a, piece) : sum.copy();
  }

  template <class Block>
  TANDEM_DEVICE static void add_up(Block& block, const Args& a, Epoch epoch, Size token, Range bytes) {
    const Routing& r = a.routing;
    const int me = block.pe();
    const auto ids = load_ids(block, r, me, token);
    const PeSet pes = pes_of(r, ids);
    const Share share = share_of(block, r, me, token, ids);
    for (const Range piece : a.rows.pieces_of(bytes)) {
      Values<Block> own;
      if (share.is_here)
        own = local_sum(block, a, share, piece).map([](float x) { return convert<float>(convert<T>(x)); });
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
        else if (share.is_here)
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
