#pragma once
/// Routing and dispatch of few tokens in one kernel. Rows leave beside the choices, so the latency of the link and of a
/// launch is paid once.
///
/// Each block finds the places of its rows from the choices of all PEs (TokenPlaces). The last blocks make the arrays
/// of the routing.

#include "collectives/experts/choices/token_places.h"
#include "collectives/experts/dispatch.h"
#include "collectives/experts/route.h"

namespace tandem::kernels {

/// `Q`: as in DispatchRows.
template <class Q>
struct RouteDispatch {
  using Packet = LL128Line;
  static constexpr bool kEpochFirst = true;
  static constexpr int kThreads = Route::kThreads;
  static constexpr int kBlocksPerSm = 2;
  static constexpr Size kPieceBytes = kRouteTile * 4;  // what these threads hold in lines, a multiple of a group
  static constexpr bool kQuantises = !std::is_same_v<Q, std::byte>;
  using Wire = std::conditional_t<kQuantises, fp8_e4m3, std::byte>;

  struct Args {
    RouteArgs route;
    const Q* x = nullptr;               // [token][row_bytes]
    const float* scales = nullptr;      // [token][groups] of rows that are given in fp8, or null
    std::byte* quantised = nullptr;     // [token][row_bytes]: this PE's own rows, if they are quantised
    float* quantised_scales = nullptr;  // [token][groups]
    RowOutput out;
    RowLines rows;
  };

  /// Whether these routings have few enough choices.
  static bool suits(const Routing& routing) {
    RouteArgs args;
    args.routing = routing;
    args.complete();
    return args.is_at_once;
  }

  // Two slots suffice, as for Route: a PE that has ended call e has every PE's message of that call.
  template <class Block>
  TANDEM_DEVICE static void run(Block& block, const Args& a) {
    const Epoch epoch = block.next_epoch(a.route.epochs);
    const Routing& r = a.route.routing;
    OwnChoices::send(block, a.route, epoch);
    for_pieces(block, a, 0, OwnChoices::tokens(block, a.route),
               [&](Size token, Range piece) { send(block, a, epoch, token, piece); });
    const TokenPlaces<Block> places(block, a.route, epoch);
    Size before = 0;
    for (int step = 0; step < r.pes; ++step) {
      const Size tokens = places.tokens(step);
      for_pieces(block, a, before, tokens, [&](Size token, Range piece) {
        receive(block, a, epoch, (block.pe() + step) % r.pes, token, piece, places.of(step, token));
      });
      before += tokens * a.rows.pieces;
    }
    places.store();
    PeerChoices::receive_peers(block, a.route, epoch, block.count() - 1 - block.index(), block.count());
  }

 private:
  /// Calls f(token, bytes of its row) for this block's pieces of so many tokens, which follow `before` other pieces.
  /// Block 0 sends the choices, so it gets the last of the first ones.
  template <class Block, class F>
  TANDEM_DEVICE static void for_pieces(const Block& block, const Args& a, Size before, Size tokens, const F& f) {
    const auto count = static_cast<std::int32_t>(block.count());
    const auto first = static_cast<std::int32_t>((before + 1) % count);
    const auto end = static_cast<std::int32_t>(tokens * a.rows.pieces);
    const std::int32_t index = block.index() - first;
    for (std::int32_t i = index < 0 ? index + count : index; i < end; i += count) {
      const std::int32_t token = a.rows.by_pieces(i);
      const Size begin = (i - token * a.rows.pieces) * a.rows.piece_bytes;
      f(token, Range{begin, min(begin + a.rows.piece_bytes, a.rows.row_bytes)});
    }
  }

  /// The PEs of a token's choices, as the caller gave them.
  template <class Id, class Block>
  TANDEM_DEVICE static PeSet<> pes_chosen(Block& block, const RouteArgs& a, Size token) {
    const Id experts = a.experts;
    return pes_of(
        a.routing,
        block.load_few(static_cast<const Id*>(a.ids) + token * a.routing.top_k, a.routing.top_k).map([experts](Id id) {
          return id >= 0 && id < experts ? static_cast<std::int32_t>(id) : -1;
        }));
  }

  /// To the peers with an expert of the token, the next one first. The row is loaded beside the choices.
  template <class Block>
  TANDEM_DEVICE static void send(Block& block, const Args& a, Epoch epoch, Size token, Range piece) {
    const Routing& r = a.route.routing;
    const auto loaded = load_row(block, a.x + token * a.rows.row_bytes, piece);
    const PeSet pes = a.route.long_ids ? pes_chosen<std::int64_t>(block, a.route, token)
                                       : pes_chosen<std::int32_t>(block, a.route, token);
    if (pes.empty()) return;
    const auto send_rows = [&](const auto& row) {
      for (const int pe : block.peers_from_self())
        if (pes.has(pe)) a.rows.template put<Wire>(block, r, epoch, pe, token, piece, row);
    };
    const auto send_scales = [&](const auto& scales) {
      for (const int pe : block.peers_from_self())
        if (pes.has(pe)) a.rows.put_scales(block, r, epoch, pe, token, piece, groups_of(piece), scales);
    };
    if constexpr (kQuantises) {
      const auto [row, scales] = quantise(block, loaded);
      send_rows(row);
      send_scales(scales);
      block.store(reinterpret_cast<Wire*>(a.quantised) + token * a.rows.row_bytes, piece, row);
      block.store(a.quantised_scales + token * a.out.groups, groups_of(piece), scales);
      block.sync();
    } else {
      send_rows(loaded);
      if (a.scales != nullptr)
        send_scales(block.template load<float>(a.scales + token * a.out.groups, groups_of(piece)));
    }
  }

  /// Bytes of a token of PE `pe` to its places, if it has any here.
  template <class Block>
  TANDEM_DEVICE static void receive(Block& block, const Args& a, Epoch epoch, int pe, Size token, Range piece,
                                    const Choices<Block, std::int32_t>& places) {
    if (!any_here(places)) return;
    const Routing& r = a.route.routing;
    const auto list = a.out.rows_of(places, pe, token);
    const bool is_own = pe == block.pe();
    const std::byte* const own = kQuantises ? a.quantised : reinterpret_cast<const std::byte*>(a.x);
    const float* const own_scales = kQuantises ? a.quantised_scales : a.scales;
    a.out.store(block, list, piece,
                is_own ? block.template load<std::byte>(own + token * a.rows.row_bytes, piece)
                       : a.rows.template get<std::byte, std::byte>(block, r, epoch, pe, token, piece));
    if (a.out.groups == 0) return;
    const Range groups = groups_of(piece);
    a.out.store_scales(block, list, groups,
                       is_own ? block.template load<float>(own_scales + token * a.out.groups, groups)
                              : a.rows.get_scales(block, r, epoch, pe, token, piece, groups));
  }
};

TANDEM_GPU_KERNEL(RouteDispatch<std::byte>, 512);
TANDEM_GPU_KERNEL(RouteDispatch<bf16>, 512);
TANDEM_GPU_KERNEL(RouteDispatch<f16>, 512);

}  // namespace tandem::kernels
