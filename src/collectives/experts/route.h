#pragma once
/// Every PE's choices to all PEs, and the rows of each expert here in the order (PE from this one on, token, choice).
///
/// No PE counts before it sends, since choices travel as packets to a place of their own. Of few choices, each block
/// reads all and ranks those of one expert: no block waits for another one. Of many, each block ranks a tile for all
/// experts, and the counts of all tiles give each tile its first rows.
/// Ranks are prefix sums, so the order never depends on timing.

#include "base/gpu_kernel.h"
#include "collectives/experts/expert_rows.h"
#include "collectives/experts/own_choices.h"
#include "collectives/experts/row_starts.h"

namespace tandem::kernels {

struct Route {
  using Packet = LL128Line;
  using Args = RouteArgs;
  static constexpr bool kEpochFirst = true;
  static constexpr int kThreads = 512;

  template <class Setup>
  static void prepare(Setup& setup, Args& a) {
    a.complete();
    const Size tiles = setup.pes() * a.tiles;
    a.first = setup.template symmetric<LL128Line>(2 * setup.pes() * a.first_lines, "first choices");
    if (a.tiles > 1) a.rest = setup.template symmetric<LL128Line>(2 * tiles * kRouteLines, "choices");
    a.lines = setup.template symmetric<LL128Line>(2 * tiles * kRouteLines, "weights");
    a.epochs = setup.epochs();
    a.met = setup.signals(setup.blocks(), "met");
    if (a.is_at_once) {
      a.kept = most_kept(a.routing);
      a.found = reinterpret_cast<std::int32_t*>(setup.template local<Index>(a.routing.experts_here * a.kept, "found"));
      return;
    }
    a.counts = reinterpret_cast<std::int32_t*>(setup.template local<Index>(tiles * a.routing.experts_here, "counts"));
    a.ranks = reinterpret_cast<std::int32_t*>(setup.template local<Index>(tiles * kRouteTile, "ranks"));
  }

  // Two slots suffice. A PE that has ended call e has every PE's message of that call. It is sent after the end of call
  // e - 1 there.
  template <class Block>
  TANDEM_DEVICE static void run(Block& block, const Args& a) {
    const Epoch epoch = block.next_epoch(a.epochs);
    OwnChoices::send(block, a, epoch);
    if (a.is_at_once)
      place_experts(block, a, epoch);
    else
      place_tiles(block, a, epoch);
  }

  /// The part of a member of some blocks, which are numbered from 0 on: keeps the peers' choices, which are of one tile
  /// each, and weights for dispatches and combinations.
  template <class Block>
  TANDEM_DEVICE static void receive_peers(Block& block, const Args& a, Epoch epoch, int member, int members) {
    for (int step = 1 + member; step < block.num_pes(); step += members) {
      const auto words = receive(block, a, epoch, step, 0, {0, a.first_words});
      receive_weights(block, a, epoch, step, 0, Size{header_of(block.pick(words, 0, 1).at(0))} * a.routing.top_k);
    }
  }

 private:
  template <class Block>
  using Numbers = typename Block::template FragmentOf<std::int32_t>;

  template <class Block>
  TANDEM_DEVICE static int pe_of(const Block& block, int step) {
    return (block.pe() + step) % block.num_pes();
  }

  /// Returns the choices of the PE that is `step` steps from here.
  template <class Block>
  TANDEM_DEVICE static Size choices_of(Block& block, const Args& a, Epoch epoch, int step) {
    const auto header = block.template ll_get<std::int32_t, Index>(a.first_at(epoch, step).local(), 1, epoch);
    return Size{header_of(block.pick(header, 0, 1).at(0))} * a.routing.top_k;
  }

  /// Returns the words of a tile of a PE's message. Stores those of peers.
  template <class Block>
  TANDEM_DEVICE static auto receive(Block& block, const Args& a, Epoch epoch, int step, Size tile, Range words) {
    const Routing& r = a.routing;
    const int pe = pe_of(block, step);
    const LL128Line* const from = (tile == 0 ? a.first_at(epoch, step) : a.rest_at(epoch, pe, tile)).local();
    auto received = block.template ll_get<std::int32_t, Index>(from, words.size(), epoch);
    if (step > 0) block.store(r.message(pe), words, received);
    if (step > 0 && tile == 0) block.store_scalar(r.tokens() + pe, header_of(block.pick(received, 0, 1).at(0)));
    return received;
  }
  template <class Block>
  TANDEM_DEVICE static void receive_weights(Block& block, const Args& a, Epoch epoch, int step, Size tile,
                                            Size choices) {
    const int pe = pe_of(block, step);
    const Size begin = tile * kRouteTile;
    const Range weights{begin, min(begin + kRouteTile, choices)};
    if (weights.empty()) return;
    block.store(a.routing.weights(pe), weights,
                block.template ll_get<float, float>(a.weights_at(epoch, pe, tile).local(), weights.size(), epoch));
  }
  TANDEM_DEVICE static Range words_of(const Args& a, Size tile, Size choices) {
    const Size begin = tile * kRouteTile;
    return {begin, tile == 0 ? a.first_words : max(begin, min(begin + kRouteTile, kHeaderWords + choices))};
  }

  /// Blocks without an expert receive the peers' choices meanwhile. Aligned experts wait for the counts of all.
  template <class Block>
  TANDEM_DEVICE static void place_experts(Block& block, const Args& a, Epoch epoch) {
    const int experts = a.routing.experts_here;
    if (block.index() >= experts)
      return receive_peers(block, a, epoch, block.index() - experts, block.count() - experts);
    for (int expert = block.index(); expert < experts; expert += block.count()) {
      ExpertRows rows(block, a, epoch, expert);
      rows.find();
      if (a.align == 1) rows.place();
    }
    if (block.count() <= experts) receive_peers(block, a, epoch, block.index(), block.count());
    if (a.align == 1) return;
    block.notify(a.met + block.index(), epoch, block.pe());
    block.wait(a.met, min(block.count(), experts), epoch);
    for (int expert = block.index(); expert < experts; expert += block.count())
      ExpertRows(block, a, epoch, expert).place();
  }

  /// Tiles are numbered in the order of rows: those of this PE first. The signals of the blocks that have some are met
  /// by all, so each sees the counts of all tiles.
  template <class Block>
  TANDEM_DEVICE static void place_tiles(Block& block, const Args& a, Epoch epoch) {
    const Size tiles = a.routing.pes * a.tiles;
    for (Size tile = block.index(); tile < tiles; tile += block.count()) rank_tile(block, a, epoch, tile);
    block.notify(a.met + block.index(), epoch, block.pe());
    for (Size tile = a.tiles + block.count() - 1 - block.index(); tile < tiles; tile += block.count())
      receive_weights(block, a, epoch, static_cast<int>(tile / a.tiles), tile % a.tiles,
                      choices_of(block, a, epoch, static_cast<int>(tile / a.tiles)));
    block.wait(a.met, min(block.count(), tiles), epoch);
    Size start = 0;
    for (const Range experts : Tiles({0, a.routing.experts_here}, kRouteTile)) {
      const std::int32_t* const counts = a.counts + tiles * experts.begin;
      const auto choices = block.column_sums(counts, {0, tiles}, experts.size());
      const RowStarts<Block> rows(block, a, experts, choices, start);
      for (Size tile = block.index(); tile < tiles; tile += block.count())
        place_tile(block, a, experts, rows, block.column_sums(counts, {0, tile}, experts.size()), tile);
      rows.store(choices);
      start = rows.end();
    }
  }

  /// Keeps the rank of each choice among those of its expert in the tile, and the numbers of the latter.
  template <class Block>
  TANDEM_DEVICE static void rank_tile(Block& block, const Args& a, Epoch epoch, Size tile) {
    const Routing& r = a.routing;
    const auto step = static_cast<int>(tile / a.tiles);
    const Size choices = tile % a.tiles == 0 ? 0 : choices_of(block, a, epoch, step);
    const auto words = receive(block, a, epoch, step, tile % a.tiles, words_of(a, tile % a.tiles, choices));
    for (const Range experts : Tiles({0, r.experts_here}, kRouteTile)) {
      const auto keys = words.map(key_of(r, block.pe(), experts));
      const auto ranked = block.key_ranks(keys, static_cast<int>(experts.size()));
      block.store(a.counts + r.pes * a.tiles * experts.begin + tile * experts.size(), {0, experts.size()},
                  ranked.counts);
      const auto numbers = block.template load<std::int32_t>(a.numbers, {0, words.size()});
      block.store_at(a.ranks + tile * kRouteTile,
                     keys.zip(numbers, [](std::int32_t key, std::int32_t i) { return key < 0 ? -1 : i; }),
                     ranked.ranks);
    }
  }

  /// Gives the choices of a tile their rows, if their experts are among these. `before`: the experts' choices in
  /// earlier tiles.
  template <class Block>
  TANDEM_DEVICE static void place_tile(Block& block, const Args& a, Range experts, const RowStarts<Block>& rows,
                                       const Numbers<Block>& before, Size tile) {
    const Routing& r = a.routing;
    const int pe = pe_of(block, static_cast<int>(tile / a.tiles));
    const Range words = words_of(a, tile % a.tiles, Size{block.load_scalar(r.tokens() + pe)} * r.top_k);
    const auto keys = block.template load<std::int32_t>(r.message(pe), words).map(key_of(r, block.pe(), experts));
    const auto ranks = block.template load<std::int32_t>(a.ranks + tile * kRouteTile, {0, words.size()});
    const auto first = static_cast<std::int32_t>(pe * r.choices() + words.begin - kHeaderWords);
    rows.store_places(rows.places(keys, ranks + block.look_up(before, keys)),
                      block.template load<std::int32_t>(a.numbers, {0, words.size()}).map([first](std::int32_t i) {
                        return first + i;
                      }));
  }
};

TANDEM_GPU_KERNEL(Route, 512);

}  // namespace tandem::kernels
