#pragma once
/// The rows of many choices. Each block ranks the choices of a tile by expert, and counts of all tiles give the tile
/// the first rows of its choices.

#include "collectives/experts/choices/peer_choices.h"
#include "collectives/experts/choices/row_starts.h"

namespace tandem::kernels {

struct TileRanks {
  /// Tiles are numbered in the order of rows: those of this PE first. The signals of the blocks that have some are met
  /// by all, so each sees the counts of all tiles.
  template <class Block>
  TANDEM_DEVICE static void place(Block& block, const RouteArgs& a, Epoch epoch) {
    const Size tiles = a.routing.pes * a.tiles;
    for (Size tile = block.index(); tile < tiles; tile += block.count()) rank_tile(block, a, epoch, tile);
    block.notify(a.met + block.index(), epoch, block.pe());
    for (Size tile = a.tiles + block.count() - 1 - block.index(); tile < tiles; tile += block.count())
      PeerChoices::receive_weights(block, a, epoch, static_cast<int>(tile / a.tiles), tile % a.tiles,
                                   PeerChoices::choices_of(block, a, epoch, static_cast<int>(tile / a.tiles)));
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

 private:
  template <class Block>
  using Numbers = typename Block::template FragmentOf<std::int32_t>;

  /// Keeps the rank of each choice among those of its expert in the tile, and the numbers of the latter.
  template <class Block>
  TANDEM_DEVICE static void rank_tile(Block& block, const RouteArgs& a, Epoch epoch, Size tile) {
    const Routing& r = a.routing;
    const auto step = static_cast<int>(tile / a.tiles);
    const Size choices = tile % a.tiles == 0 ? 0 : PeerChoices::choices_of(block, a, epoch, step);
    const auto words =
        PeerChoices::receive(block, a, epoch, step, tile % a.tiles, PeerChoices::words_of(a, tile % a.tiles, choices));
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
  TANDEM_DEVICE static void place_tile(Block& block, const RouteArgs& a, Range experts, const RowStarts<Block>& rows,
                                       const Numbers<Block>& before, Size tile) {
    const Routing& r = a.routing;
    const int pe = PeerChoices::pe_of(block, static_cast<int>(tile / a.tiles));
    const Range words = PeerChoices::words_of(a, tile % a.tiles, Size{block.load_scalar(r.tokens() + pe)} * r.top_k);
    const auto keys = block.template load<std::int32_t>(r.message(pe), words).map(key_of(r, block.pe(), experts));
    const auto ranks = block.template load<std::int32_t>(a.ranks + tile * kRouteTile, {0, words.size()});
    const auto first = static_cast<std::int32_t>(pe * r.choices() + words.begin - kHeaderWords);
    rows.store_places(rows.places(keys, ranks + block.look_up(before, keys)),
                      block.template load<std::int32_t>(a.numbers, {0, words.size()}).map([first](std::int32_t i) {
                        return first + i;
                      }));
  }
};

}  // namespace tandem::kernels
