#pragma once
/// Routing and dispatch of few tokens in one kernel. Rows leave behind the choices, so the latency of the link and of a
/// launch is paid once.
///
/// Each block finds the places of its rows from the choices of all PEs (TokenPlaces). The last blocks make the arrays
/// of the routing, for which rows do not wait.

#include "collectives/experts/dispatch.h"
#include "collectives/experts/route.h"
#include "collectives/experts/token_places.h"

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

  struct Args {
    RouteArgs route;
    const Q* x = nullptr;      // rows to quantise
    std::byte* own = nullptr;  // [token][row_bytes]: rows as they travel
    float* scales = nullptr;   // [token][groups], or null
    RowOutput out;
    RowLines rows;
    Size row_step = 0;  // bytes that a block takes at once: a piece, or a row
  };

  /// Whether these routings have few enough choices. Rows of aligned experts would wait for the counts of others.
  static bool suits(const Routing& routing, Size align) {
    RouteArgs args;
    args.routing = routing;
    args.complete();
    return align == 1 && fit_a_block(args);
  }

  // Two slots suffice, as for Route: a PE that has ended call e has every PE's message of that call.
  template <class Block>
  TANDEM_DEVICE static void run(Block& block, const Args& a) {
    const Epoch epoch = block.next_epoch(a.route.epochs);
    const Routing& r = a.route.routing;
    OwnChoices::send(block, a.route, epoch);
    // The peers need the choices before the rows, behind which they would queue.
    block.template ll_get<std::int32_t, Index>(a.route.first_at(epoch, 0).local(), 1, epoch);
    for_parts(block, a, 0, OwnChoices::tokens(block, a.route),
              [&](Size token, Range bytes) { send(block, a, epoch, token, bytes); });
    const TokenPlaces<Block> places(block, a.route, epoch);
    Size before = 0;
    for (int step = 0; step < r.pes; ++step) {
      const Size tokens = places.tokens(step);
      for_parts(block, a, before, tokens, [&](Size token, Range bytes) {
        receive(block, a, epoch, (block.pe() + step) % r.pes, token, bytes,
                places.of(step, token, a.out.max_tokens > 0));
      });
      before += tokens * ceil_div(a.rows.row_bytes, a.row_step);
    }
    for (int expert = block.count() - 1 - block.index(); expert < r.experts_here; expert += block.count()) {
      ExpertRows rows(block, a.route, epoch, expert);
      rows.find();
      rows.place();
    }
    Route::receive_all(block, a.route, epoch, block.index(), block.count());
  }

 private:
  /// Calls f(token, bytes of its row) for this block's parts of so many tokens, which follow `before` others. Block 0
  /// sends the choices, so it gets the last of the first ones.
  template <class Block, class F>
  TANDEM_DEVICE static void for_parts(const Block& block, const Args& a, Size before, Size tokens, const F& f) {
    const Size first = (before + 1) % block.count();
    const Size parts = ceil_div(a.rows.row_bytes, a.row_step);
    for (Size i = (block.index() + block.count() - first) % block.count(); i < tokens * parts; i += block.count()) {
      const Size begin = i % parts * a.row_step;
      f(i / parts, Range{begin, min(begin + a.row_step, a.rows.row_bytes)});
    }
  }

  /// The PEs of a token's choices, as the caller gave them.
  template <class Id, class Block>
  TANDEM_DEVICE static PeSet<> pes_chosen(Block& block, const RouteArgs& a, Size token) {
    const Id* const from = static_cast<const Id*>(a.ids) + token * a.routing.top_k;
    const auto given = load_choices(block, from, a.routing.top_k, Id{-1});
    Choices<std::int32_t> ids;
    for (int k = 0; k < kMostTopK; ++k)
      ids.of[k] = given.of[k] >= 0 && given.of[k] < a.experts ? static_cast<std::int32_t>(given.of[k]) : -1;
    return pes_of(a.routing, ids);
  }

  /// To the peers with an expert of the token, the next one first.
  template <class Block>
  TANDEM_DEVICE static void send(Block& block, const Args& a, Epoch epoch, Size token, Range bytes) {
    const Routing& r = a.route.routing;
    const PeSet pes = a.route.long_ids ? pes_chosen<std::int64_t>(block, a.route, token)
                                       : pes_chosen<std::int32_t>(block, a.route, token);
    if (pes.empty()) return;
    const auto for_peers = [&](const auto& f) {
      for (const int pe : block.peers_from_self())
        if (pes.has(pe)) f(pe);
    };
    for (const Range piece : a.rows.pieces_of(bytes)) {
      if constexpr (kQuantises)
        quantise_piece<kPieceBytes / 2>(block, a.x + token * a.rows.row_bytes, a.own + token * a.rows.row_bytes,
                                        a.scales + token * a.out.groups, piece);
      const auto row = own_row(block, a, token, piece);
      for_peers([&](int pe) { a.rows.template put<std::byte>(block, r, epoch, pe, token, piece, row); });
      if (a.scales == nullptr) continue;
      const auto scales = own_scales(block, a, token, piece);
      for_peers([&](int pe) { a.rows.put_scales(block, r, epoch, pe, token, piece, groups_of(piece), scales); });
    }
  }

  /// Bytes of a token of PE `pe` to its places, if it has any here.
  template <class Block>
  TANDEM_DEVICE static void receive(Block& block, const Args& a, Epoch epoch, int pe, Size token, Range bytes,
                                    const Choices<std::int32_t>& places) {
    if (!any_here(places)) return;
    const Routing& r = a.route.routing;
    const bool is_own = pe == block.pe();
    for (const Range piece : a.rows.pieces_of(bytes)) {
      a.out.store(block, places, pe, token, piece,
                  is_own ? own_row(block, a, token, piece)
                         : a.rows.template get<std::byte, std::byte>(block, r, epoch, pe, token, piece));
      if (a.out.groups == 0) continue;
      const Range groups = groups_of(piece);
      a.out.store_scales(
          block, places, pe, token, groups,
          is_own ? own_scales(block, a, token, piece) : a.rows.get_scales(block, r, epoch, pe, token, piece, groups));
    }
  }

  template <class Block>
  TANDEM_DEVICE static auto own_row(Block& block, const Args& a, Size token, Range piece) {
    return block.template load<std::byte>(static_cast<const std::byte*>(a.own + token * a.rows.row_bytes), piece);
  }
  template <class Block>
  TANDEM_DEVICE static auto own_scales(Block& block, const Args& a, Size token, Range piece) {
    return block.template load<float>(static_cast<const float*>(a.scales + token * a.out.groups), groups_of(piece));
  }
};

TANDEM_GPU_KERNEL(RouteDispatch<std::byte>, 512);
TANDEM_GPU_KERNEL(RouteDispatch<bf16>, 512);
TANDEM_GPU_KERNEL(RouteDispatch<f16>, 512);

}  // namespace tandem::kernels
