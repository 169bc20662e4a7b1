#pragma once
/// Rows to the PEs whose experts their tokens chose. Each row crosses once for each PE, not once for each expert.

#include <type_traits>

#include "base/gpu_kernel.h"
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
    const std::uint64_t pes = pes_of(r, ids);
    if (pes == 0) return;
    const auto for_peers = [&](const auto& f) {
      for (const int pe : block.peers_from_self())
        if (pes >> pe & 1U) f(pe);
    };
    const std::byte* const own = a.own + token * a.rows.row_bytes;
    if constexpr (kQuantises)
      for (const Range piece : a.rows.pieces_of(bytes))
        quantise_piece<Rows::kPieceBytes / 2>(block, a.x + token * a.rows.row_bytes, a.own + token * a.rows.row_bytes,
                                              a.scales + token * a.out.groups, piece);
    for_pieces(
        block, a.rows, bytes, [&](Range piece) { return block.template load<std::byte>(own, piece); },
        [&](const auto& for_loaded) {
          for_peers([&](int pe) {
            for_loaded([&](Range piece, const auto& row) {
              a.rows.template put<std::byte>(block, r, epoch, pe, token, piece, row);
            });
          });
          store(block, a, places, me, token, for_loaded);
        });
    if (a.scales == nullptr) return;
    for (const Range piece : a.rows.pieces_of(bytes)) {
      const Range groups = groups_of(piece);
      const auto scales =
          block.template load<float>(static_cast<const float*>(a.scales + token * a.out.groups), groups);
      for_peers([&](int pe) { a.rows.put_scales(block, r, epoch, pe, token, piece, groups, scales); });
      a.out.store_scales(block, places, me, token, groups, scales);
    }
  }

  /// Stores loaded pieces to all rows of a token here.
  template <class Block, class ForLoaded>
  TANDEM_DEVICE static void store(Block& block, const Args& a, const Choices<std::int32_t>& places, int pe, Size token,
                                  const ForLoaded& for_loaded) {
    a.out.for_rows(places, pe, token, [&](Size to) {
      for_loaded([&](Range piece, const auto& row) { block.store(a.out.rows + to * a.out.row_bytes, piece, row); });
    });
  }

  template <class Block>
  TANDEM_DEVICE static void receive(Block& block, const Args& a, Epoch epoch, int pe, Size token, Range bytes) {
    const Routing& r = a.routing;
    const auto places = load_places(block, r, pe, token, load_ids(block, r, pe, token));
    if (!any_here(places)) return;
    for_pieces(
        block, a.rows, bytes,
        [&](Range piece) { return a.rows.template get<std::byte, std::byte>(block, r, epoch, pe, token, piece); },
        [&](const auto& for_loaded) { store(block, a, places, pe, token, for_loaded); });
    if (a.out.groups == 0) return;
    for (const Range piece : a.rows.pieces_of(bytes)) {
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
