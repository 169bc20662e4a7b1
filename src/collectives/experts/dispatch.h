#pragma once
/// Rows to the PEs whose experts their tokens chose. Each row crosses once for each PE, not once for each expert.

#include <cmath>
#include <type_traits>

#include "base/gpu_kernel.h"
#include "collectives/all_reduce_norm/norm_args.h"
#include "collectives/experts/row_chunks.h"
#include "collectives/experts/row_lines.h"
#include "collectives/experts/row_output.h"

namespace tandem::kernels {

/// The scales of a piece of a row.
TANDEM_DEVICE inline Range groups_of(Range piece) {
  return {piece.begin / kScaleGroup, ceil_div(piece.end, kScaleGroup)};
}

/// Makes a piece of a row in fp8, and its scales, in memory, since fragments of one byte have another layout. `kStep`:
/// elements that the block holds, a multiple of a group.
template <Size kStep, class T, class Block>
TANDEM_DEVICE void quantise_piece(Block& block, const T* x, std::byte* own, float* its_scales, Range piece) {
  for (const Range part : Tiles(piece, kStep)) {
    const auto values = block.template load<float>(x, part);
    const auto scales = block.template group_greatest<kScaleGroup>(values.map([](float value) { return fabsf(value); }))
                            .map([](float greatest) { return scale_for(greatest); });
    block.template store_group_firsts<kScaleGroup>(its_scales + part.begin / kScaleGroup, scales);
    block.store(reinterpret_cast<fp8_e4m3*>(own), part,
                values.zip(scales, [](float value, float scale) { return value * (1.0F / scale); }));
  }
  block.sync();
}

/// `Q`: the type of rows that are quantised on the way, or std::byte for rows that travel as they are. `Rows`: the form
/// in which they travel, RowLines or RowChunks.
template <class Q, class Rows>
struct DispatchRows {
  using Packet = typename Rows::Packet;
  static constexpr bool kEpochFirst = true;
  static constexpr int kThreads = Rows::kThreads;
  static constexpr int kBlocksPerSm = Rows::kBlocksPerSm;
  static constexpr bool kQuantises = !std::is_same_v<Q, std::byte>;

  struct Args {
    const Q* x = nullptr;      // rows to quantise
    std::byte* own = nullptr;  // [token][row_bytes]: rows as they travel
    float* scales = nullptr;   // [token][groups], or null
    RowOutput out;
    CallPart part = CallPart::kAll;
    Routing routing;
    Rows rows;
  };

  template <class Block>
  TANDEM_DEVICE static void run(Block& block, const Args& a) {
    const Epoch epoch = a.rows.next_epoch(block, a.part);
    const Routing& r = a.routing;
    if (a.part != CallPart::kSend) a.rows.announce(block, epoch);
    for (Size round = 0; round < a.rows.rounds(block); ++round) {
      if (a.part != CallPart::kReceive) {
        const Size tokens = block.load_scalar(r.tokens() + block.pe());
        a.rows.for_own(block, round, tokens, [&](Size token, Range bytes) { send(block, a, epoch, token, bytes); });
        for (const int pe : block.peers_from_self()) a.rows.notify(block, round, tokens, epoch, pe);
      }
      if (a.part == CallPart::kSend) continue;
      if (round + 1 == a.rows.rounds(block)) a.rows.await_all(block, epoch);
      for (const int pe : block.peers_from_self()) {
        const Size tokens = block.load_scalar(r.tokens() + pe);
        a.rows.await(block, round, tokens, epoch, pe);
        a.rows.for_own(block, round, tokens,
                       [&](Size token, Range bytes) { receive(block, a, epoch, pe, token, bytes); });
      }
    }
  }

 private:
  /// To the peers with an expert of the token, the next one first, and to the token's rows here.
  template <class Block>
  TANDEM_DEVICE static void send(Block& block, const Args& a, Epoch epoch, Size token, Range bytes) {
    const Routing& r = a.routing;
    const int me = block.pe();
    const auto ids = load_ids(block, r, me, token);
    const auto places = load_places(block, r, me, token, ids);
    const PeSet pes = pes_of(r, ids);
    if (pes.empty()) return;
    const auto for_peers = [&](const auto& f) {
      for (const int pe : block.peers_from_self())
        if (pes.has(pe)) f(pe);
    };
    for (const Range piece : a.rows.pieces_of(bytes)) {
      if constexpr (kQuantises)
        quantise_piece<Rows::kPieceBytes / 2>(block, a.x + token * a.rows.row_bytes, a.own + token * a.rows.row_bytes,
                                              a.scales + token * a.out.groups, piece);
      const auto row =
          block.template load<std::byte>(static_cast<const std::byte*>(a.own + token * a.rows.row_bytes), piece);
      for_peers([&](int pe) { a.rows.template put<std::byte>(block, r, epoch, pe, token, piece, row); });
      a.out.store(block, places, me, token, piece, row);
      if (a.scales == nullptr) continue;
      const Range groups = groups_of(piece);
      const auto scales =
          block.template load<float>(static_cast<const float*>(a.scales + token * a.out.groups), groups);
      for_peers([&](int pe) { a.rows.put_scales(block, r, epoch, pe, token, piece, groups, scales); });
      a.out.store_scales(block, places, me, token, groups, scales);
    }
  }

  template <class Block>
  TANDEM_DEVICE static void receive(Block& block, const Args& a, Epoch epoch, int pe, Size token, Range bytes) {
    const Routing& r = a.routing;
    const auto places = load_places(block, r, pe, token, load_ids(block, r, pe, token));
    if (!any_here(places)) return;
    for (const Range piece : a.rows.pieces_of(bytes)) {
      a.out.store(block, places, pe, token, piece,
                  a.rows.template get<std::byte, std::byte>(block, r, epoch, pe, token, piece));
      if (a.out.groups == 0) continue;
      const Range groups = groups_of(piece);
      a.out.store_scales(block, places, pe, token, groups,
                         a.rows.get_scales(block, r, epoch, pe, token, piece, groups));
    }
  }
};

template <class Q>
using DispatchByPackets = DispatchRows<Q, RowLines>;
template <class Q>
using DispatchByChunks = DispatchRows<Q, RowChunks>;

TANDEM_GPU_KERNEL(DispatchByPackets<std::byte>, 128);
TANDEM_GPU_KERNEL(DispatchByPackets<bf16>, 128);
TANDEM_GPU_KERNEL(DispatchByPackets<f16>, 128);
TANDEM_GPU_KERNEL(DispatchByChunks<std::byte>, 128);
TANDEM_GPU_KERNEL(DispatchByChunks<bf16>, 128);
TANDEM_GPU_KERNEL(DispatchByChunks<f16>, 128);

}  // namespace tandem::kernels
