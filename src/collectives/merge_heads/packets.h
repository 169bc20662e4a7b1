#pragma once
/// merge_heads with packets: every PE sends each peer the heads that the peer merges, with their log-sum-exps.
///
/// Blocks are small, since a head is. A round carries a piece of one head to each PE. Its log-sum-exp goes with each
/// piece, and also to a PE that has no such head: its arrival frees the slots of an earlier round.

#include <cmath>

#include "base/gpu_kernel.h"
#include "collectives/steps/packet_rounds.h"

namespace tandem::kernels {

/// Returns whether a partial output with this log-sum-exp counts.
TANDEM_DEVICE inline bool has_weight(float lse) { return lse - lse == 0; }

template <class T, class P>
struct MergeHeads {
  using Packet = P;
  static constexpr bool kEpochFirst = true;
  static constexpr int kThreads = 64;
  static constexpr int kBlocksPerSm = 4;
  static constexpr Size kMostBytes = 896;  // of a piece: 56 threads of a block of LL128 have elements

  struct Args {
    const T* partial;
    const float* lse;
    T* out;
    PacketStaging<P> staging;
    Size lse_place = 0;  // packets of a slot before the log-sum-exp
    Size batch = 0;
    Size heads = 0;
    Size head_size = 0;
    float per_unit = 1;  // binary logarithm of the base
    bool own_heads = true;
  };

  template <class Setup>
  static void prepare(Setup& setup, Args& a) {
    a.staging.bytes = min(round_up(a.head_size * Size{sizeof(T)}, 16), kMostBytes);
    a.lse_place = round_up(packets_for<P>(a.staging.bytes), 2);  // packets begin at multiples of 16 bytes
    a.staging.each = static_cast<int>(a.lse_place) + 2;
    a.staging.packets = setup.template symmetric<P>(a.staging.packets_in_all(setup), "partial outputs");
    a.staging.rounds = setup.epochs();
  }

  /// The heads that PE `pe` merges.
  TANDEM_DEVICE static Range heads_of(const Args& a, int pe, int pes) {
    return a.own_heads ? split(a.heads, pes)[pe] : Range{0, a.heads};
  }

  // Warps without elements in a round get no packets of it. So the block synchronises before it sends the next one, and
  // slots are safe as in PacketRounds::exchange.
  template <class Block>
  TANDEM_DEVICE static void run(Block& block, const Args& a) {
    const Size heads = heads_of(a, 0, block.num_pes()).size();  // PE 0 has the most
    const Range rows = split(a.batch * heads, block.count())[block.index()];
    const Size step = (*block.template tiles<T>({0, a.staging.bytes / Size{sizeof(T)}}).begin()).size();
    const Size pieces = ceil_div(a.head_size, step);
    const PacketRounds<P, T> rounds(block, a.staging, Pieces{rows.size() * pieces});
    const auto head = [&](Size round, int pe) {
      const Size row = rows.begin + round / pieces;
      const Range own = heads_of(a, pe, block.num_pes());
      const Size begin = round % pieces * step;
      return Piece{
          row / heads, own.begin + row % heads, row % heads < own.size(), {begin, min(begin + step, a.head_size)}};
    };
    for (Size i = 0; i <= rounds.count(); ++i) {
      if (i > 0) block.sync();
      if (i < rounds.count())
        for (const int pe : block.peers_from_self()) send(block, a, rounds, i, head(i, pe), pe);
      if (i > 0) receive(block, a, rounds, i - 1, head(i - 1, block.pe()));
    }
  }

 private:
  /// A part of one PE's head.
  struct Piece {
    Size batch;
    Size head;
    bool exists;
    Range elements;
  };

  template <class Block>
  TANDEM_DEVICE static void send(Block& block, const Args& a, const PacketRounds<P, T>& rounds, Size i,
                                 const Piece& piece, int pe) {
    const Symm<P> to = rounds.packets(i, block.pe());
    const Size row = piece.batch * a.heads + (piece.exists ? piece.head : 0);
    if (piece.exists)
      block.template ll_put_fragment<T>(to, block.template load<T>(a.partial + row * a.head_size, piece.elements),
                                        rounds.flag(i), pe);
    block.template ll_put_fragment<float>(to + a.lse_place, block.template load<float>(a.lse + row, {0, 1}),
                                          rounds.flag(i), pe);
  }

  template <class Block>
  TANDEM_DEVICE static void receive(Block& block, const Args& a, const PacketRounds<P, T>& rounds, Size i,
                                    const Piece& piece) {
    const Size row = piece.batch * a.heads + (piece.exists ? piece.head : 0);
    const auto from = [&](int pe) { return static_cast<const P*>(rounds.packets(i, pe).local()); };
    const auto lse = [&](int pe) {  // the sum of one element: all threads get it
      return pe == block.pe()
                 ? block.load_scalar(a.lse + row)
                 : block.sum(block.template ll_get<float, float>(from(pe) + a.lse_place, 1, rounds.flag(i)));
    };
    float greatest = 0;
    bool is_first = true;
    for (int pe = 0; pe < block.num_pes(); ++pe) {
      const float one = lse(pe);
      if (!has_weight(one)) continue;
      greatest = is_first || one > greatest ? one : greatest;
      is_first = false;
    }
    if (!piece.exists) return;
    auto sum =
        block.template load<float>(a.partial + row * a.head_size, piece.elements).map([](float) { return 0.0F; });
    float weights = 0;
    for (int pe = 0; pe < block.num_pes(); ++pe) {
      const auto values = pe == block.pe()
                              ? block.template load<float>(a.partial + row * a.head_size, piece.elements)
                              : block.template ll_get<float, T>(from(pe), piece.elements.size(), rounds.flag(i));
      const float one = lse(pe);
      if (!has_weight(one)) continue;
      const float weight = exp2f((one - greatest) * a.per_unit);
      weights += weight;
      sum = sum.zip(values, [weight](float x, float y) { return x + y * weight; });
    }
    const float inverse = weights > 0 ? 1.0F / weights : 0.0F;
    const Range own = heads_of(a, block.pe(), block.num_pes());
    const Size out = piece.batch * own.size() + piece.head - own.begin;
    block.store(a.out + out * a.head_size, piece.elements, sum * inverse);
  }
};
template <class T>
struct MergeHeadsLL : MergeHeads<T, LLPacket> {};
template <class T>
struct MergeHeadsLL128 : MergeHeads<T, LL128Line> {};

TANDEM_GPU_KERNEL(MergeHeadsLL<float>, 64);
TANDEM_GPU_KERNEL(MergeHeadsLL<f16>, 64);
TANDEM_GPU_KERNEL(MergeHeadsLL<bf16>, 64);
TANDEM_GPU_KERNEL(MergeHeadsLL128<float>, 64);
TANDEM_GPU_KERNEL(MergeHeadsLL128<f16>, 64);
TANDEM_GPU_KERNEL(MergeHeadsLL128<bf16>, 64);

}  // namespace tandem::kernels
