#pragma once
/// Rows to the PEs whose experts their tokens chose. Each row crosses once for each PE, not once for each expert.

#include <type_traits>
#include <utility>

#include "base/gpu_kernel.h"
#include "collectives/experts/quantised_piece.h"
#include "collectives/experts/row_chunks.h"
#include "collectives/experts/row_lines.h"
#include "collectives/experts/row_output.h"

namespace tandem::kernels {

/// `Q`: the type of rows that are quantised on the way, or std::byte for rows that travel as they are. `Rows`: the form
/// in which they travel, RowLines or RowChunks.
template <class Q, class Rows>
struct DispatchRows {
  using Packet = typename Rows::Packet;
  static constexpr bool kEpochFirst = true;
  static constexpr int kThreads = Rows::kThreads;
  static constexpr int kBlocksPerSm = Rows::kBlocksPerSm;
  static constexpr bool kQuantises = !std::is_same_v<Q, std::byte>;
  static constexpr int kAtOnce = Rows::kPiecesAtOnce;
  using Wire = std::conditional_t<kQuantises, fp8_e4m3, std::byte>;

  struct Args {
    const Q* x = nullptr;           // [token][row_bytes]
    const float* scales = nullptr;  // [token][groups] of rows that are given in fp8, or null
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
    const RowMember sender = a.rows.sender(block, a.part);
    for (Size round = 0; round < a.rows.rounds(sender); ++round) {
      const Size tokens = block.load_scalar(r.tokens() + block.pe());
      a.rows.for_own(sender, round, tokens, [&](Size token, Range bytes) { send(block, a, epoch, token, bytes); });
      for (const int pe : block.peers_from_self()) a.rows.notify(block, sender, round, tokens, epoch, pe);
    }
    const RowMember receiver = a.rows.receiver(block, a.part);
    for (Size round = 0; round < a.rows.rounds(receiver); ++round)
      for (const int pe : block.peers_from_self()) {
        const Size tokens = block.load_scalar(r.tokens() + pe);
        a.rows.await(block, receiver, round, tokens, epoch, pe);
        a.rows.for_own(receiver, round, tokens,
                       [&](Size token, Range bytes) { receive(block, a, epoch, pe, token, bytes); });
      }
    if (a.part != CallPart::kSend) a.rows.await_all(block, epoch);
  }

 private:
  template <class Block, class T>
  using Pieces = typename Block::template FragmentOf<T>[kAtOnce];

  /// To the peers with an expert of the token, the next one first, and to the token's rows here.
  template <class Block>
  TANDEM_DEVICE static void send(Block& block, const Args& a, Epoch epoch, Size token, Range bytes) {
    constexpr Size kMost = kQuantises ? Rows::kQuantisedBytes : Rows::kPieceBytes;
    const Size step = min(a.rows.piece_bytes, kMost);
    const Routing& r = a.routing;
    const auto ids = load_ids(block, r, block.pe(), token);
    const auto list = a.out.rows_of(load_places(block, r, block.pe(), token, ids), block.pe(), token);
    const PeSet pes = pes_of(r, ids);
    if (pes.empty()) return;
    const auto load = [&](Range piece) { return load_row(block, a.x + token * a.rows.row_bytes, piece); };
    for (const Range some : Tiles(bytes, kAtOnce * step)) {
      decltype(load(bytes)) loaded[kAtOnce];
      for_pieces<kAtOnce>(some, step, [&](int u, Range piece) { loaded[u] = load(piece); });
      if constexpr (kQuantises) {
        Pieces<Block, fp8_e4m3> quantised;
        for_pieces<kAtOnce>(some, step, [&](int u, Range piece) {
          auto [row, scales] = quantise(block, loaded[u]);
          send_scales(block, a, epoch, pes, list, token, piece, scales);
          quantised[u] = std::move(row);
        });
        send_rows(block, a, epoch, pes, list, token, some, step, quantised);
      } else {
        send_rows(block, a, epoch, pes, list, token, some, step, loaded);
        if (a.scales != nullptr)
          for_pieces<kAtOnce>(some, step, [&](int, Range piece) {
            send_scales(block, a, epoch, pes, list, token, piece,
                        block.template load<float>(a.scales + token * a.out.groups, groups_of(piece)));
          });
      }
    }
  }

  template <class Block, class List, class Loaded>
  TANDEM_DEVICE static void send_rows(Block& block, const Args& a, Epoch epoch, const PeSet<>& pes, const List& list,
                                      Size token, Range some, Size step, const Loaded& loaded) {
    for (const int pe : block.peers_from_self()) {
      if (!pes.has(pe)) continue;
      for_pieces<kAtOnce>(some, step, [&](int u, Range piece) {
        a.rows.template put<Wire>(block, a.routing, epoch, pe, token, piece, loaded[u]);
      });
    }
    a.out.template store_rows<Wire, kAtOnce>(block, list, some, step, loaded);
  }

  template <class Block, class List, class Scales>
  TANDEM_DEVICE static void send_scales(Block& block, const Args& a, Epoch epoch, const PeSet<>& pes, const List& list,
                                        Size token, Range piece, const Scales& scales) {
    const Range groups = groups_of(piece);
    for (const int pe : block.peers_from_self())
      if (pes.has(pe)) a.rows.put_scales(block, a.routing, epoch, pe, token, piece, groups, scales);
    a.out.store_scales(block, list, groups, scales);
  }

  template <class Block>
  TANDEM_DEVICE static void receive(Block& block, const Args& a, Epoch epoch, int pe, Size token, Range bytes) {
    const Routing& r = a.routing;
    const auto places = load_places(block, r, pe, token, load_ids(block, r, pe, token));
    if (!any_here(places)) return;
    const auto list = a.out.rows_of(places, pe, token);
    const Size step = a.rows.piece_bytes;
    for (const Range some : Tiles(bytes, kAtOnce * step)) {
      Pieces<Block, std::byte> loaded;
      for_pieces<kAtOnce>(some, step, [&](int u, Range piece) {
        loaded[u] = a.rows.template get<std::byte, std::byte>(block, r, epoch, pe, token, piece);
      });
      a.out.template store_rows<std::byte, kAtOnce>(block, list, some, step, loaded);
      if (a.out.groups == 0) continue;
      for_pieces<kAtOnce>(some, step, [&](int, Range piece) {
        const Range groups = groups_of(piece);
        a.out.store_scales(block, list, groups, a.rows.get_scales(block, r, epoch, pe, token, piece, groups));
      });
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
