#pragma once
/// merge_heads with packets: every PE sends each peer the heads that the peer merges, with their log-sum-exps.
///
/// Blocks are small, since a head is: a warp for packets, three warps for lines of larger heads. A round carries a
/// piece of one head to each PE. Its log-sum-exp goes with each piece, and also to a PE that has no such head: its
/// arrival frees the slots of an earlier round.

#include <cmath>
#include <type_traits>

#include "base/gpu_kernel.h"
#include "collectives/steps/packet_rounds.h"

namespace tandem::kernels {

/// Returns whether a partial output with this log-sum-exp counts.
TANDEM_DEVICE inline bool has_weight(float lse) { return lse - lse == 0; }

template <class T, class P>
struct MergeHeads {
  using Packet = P;
  static constexpr bool kEpochFirst = true;
  static constexpr bool kLines = std::is_same_v<P, LL128Line>;
  static constexpr int kThreads = kLines ? 96 : 32;
  static constexpr int kBlocksPerSm = kLines ? 5 : 12;
  /// The most bytes of a piece: 16 for each thread that has elements.
  static constexpr Size kMostBytes = kLines ? 16 * 84 : 16 * 32;

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
    const float own_lse = block.load_scalar(a.lse + row);
    const auto own_values =
        block.template load<T>(a.partial + row * a.head_size, piece.exists ? piece.elements : Range{});
    auto sum = own_values.template convert<float>().map([](float) { return 0.0F; });
    float greatest = 0;
    float weights = 0;
    for (int pe = 0; pe < block.num_pes(); ++pe) {
      // The sum of one element: all threads get it.
      const float lse = pe == block.pe()
                            ? own_lse
                            : block.sum(block.template ll_get<float, float>(from(pe) + a.lse_place, 1, rounds.flag(i)));
      if (!piece.exists) continue;
      const auto values = pe == block.pe() ? own_values.template convert<float>()
                                           : block.template ll_get<float, T>(from(pe), sum.size(), rounds.flag(i));
      if (!has_weight(lse)) continue;
      // Weights are relative to the greatest log-sum-exp so far.
      const float most = weights == 0 || lse > greatest ? lse : greatest;
      const float rescaled = weights == 0 ? 0.0F : exp2f((greatest - most) * a.per_unit);
      const float weight = exp2f((lse - most) * a.per_unit);
      greatest = most;
      weights = weights * rescaled + weight;
      sum = sum.zip(values, [rescaled, weight](float x, float y) { return x * rescaled + y * weight; });
    }
    if (!piece.exists) return;
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

TANDEM_GPU_KERNEL(MergeHeadsLL<float>, 32);
TANDEM_GPU_KERNEL(MergeHeadsLL<f16>, 32);
TANDEM_GPU_KERNEL(MergeHeadsLL<bf16>, 32);
TANDEM_GPU_KERNEL(MergeHeadsLL128<float>, 96);
TANDEM_GPU_KERNEL(MergeHeadsLL128<f16>, 96);
TANDEM_GPU_KERNEL(MergeHeadsLL128<bf16>, 96);

}  // namespace tandem::kernels
