#pragma once
/// Every PE's choices to all PEs, and the rows of each expert here in the order (PE from this one on, token, choice).
///
/// No PE counts before it sends, since choices travel as packets to a place of their own. Few choices are ranked by
/// every block for itself. Of many, each block ranks a tile, and counts of all tiles give each tile its first rows.
/// Ranks are prefix sums, so the order never depends on timing.

#include "base/gpu_kernel.h"
#include "collectives/experts/own_choices.h"
#include "collectives/experts/token_places.h"

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
    if (a.is_at_once) return;
    a.counts = reinterpret_cast<std::int32_t*>(setup.template local<Index>(tiles * a.routing.experts_here, "counts"));
    a.ranks = reinterpret_cast<std::int32_t*>(setup.template local<Index>(tiles * kRouteTile, "ranks"));
    a.met = setup.signals(setup.blocks(), "met");
  }

  // Two slots suffice. A PE that has ended call e has every PE's message of that call. It is sent after the end of call
  // e - 1 there.
  template <class Block>
  TANDEM_DEVICE static void run(Block& block, const Args& a) {
    const Epoch epoch = block.next_epoch(a.epochs);
    OwnChoices::send(block, a, epoch);
    if (a.is_at_once) {
      receive_peers(block, a, epoch);
      TokenPlaces<Block>(block, a, epoch).store();
    } else {
      place_tiles(block, a, epoch);
    }
  }

  /// Keeps the peers' choices, which are of one tile each, and weights for dispatches and combinations. The last blocks
  /// do this.
  template <class Block>
  TANDEM_DEVICE static void receive_peers(Block& block, const Args& a, Epoch epoch) {
    for (int step = block.count() - block.index(); step < block.num_pes(); step += block.count()) {
      receive(block, a, epoch, step, 0);
      receive_weights(block, a, epoch, step, 0);
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
  TANDEM_DEVICE static auto receive(Block& block, const Args& a, Epoch epoch, int step, Size tile) {
    const Routing& r = a.routing;
    const int pe = pe_of(block, step);
    const Range words = words_of(block, a, epoch, step, tile);
    const LL128Line* const from = (tile == 0 ? a.first_at(epoch, step) : a.rest_at(epoch, pe, tile)).local();
    auto received = block.template ll_get<std::int32_t, Index>(from, words.size(), epoch);
    if (step > 0) block.store(r.message(pe), words, received);
    if (step > 0 && tile == 0) block.store_scalar(r.tokens() + pe, header_of(block.pick(received, 0, 1).at(0)));
    return received;
  }
  template <class Block>
  TANDEM_DEVICE static Range words_of(Block& block, const Args& a, Epoch epoch, int step, Size tile) {
    if (tile == 0) return {0, a.first_words};
    const Size begin = tile * kRouteTile;
    return {begin, max(begin, min(begin + kRouteTile, kHeaderWords + choices_of(block, a, epoch, step)))};
  }

  template <class Block>
  TANDEM_DEVICE static void receive_weights(Block& block, const Args& a, Epoch epoch, int step, Size tile) {
    const int pe = pe_of(block, step);
    const Size begin = tile * kRouteTile;
    const Range weights{begin, min(begin + kRouteTile, choices_of(block, a, epoch, step))};
    if (weights.empty()) return;
    block.store(a.routing.weights(pe), weights,
                block.template ll_get<float, float>(a.weights_at(epoch, pe, tile).local(), weights.size(), epoch));
  }

  /// Tiles are numbered in the order of rows: those of this PE first. The signals of the blocks that have some are met
  /// by all, so each sees the counts of all tiles.
  template <class Block>
  TANDEM_DEVICE static void place_tiles(Block& block, const Args& a, Epoch epoch) {
    const Size tiles = a.routing.pes * a.tiles;
    for (Size tile = block.index(); tile < tiles; tile += block.count()) rank_tile(block, a, epoch, tile);
    block.notify(a.met + block.index(), epoch, block.pe());
    for (Size tile = a.tiles + block.count() - 1 - block.index(); tile < tiles; tile += block.count())
      receive_weights(block, a, epoch, static_cast<int>(tile / a.tiles), tile % a.tiles);
    block.wait(a.met, min(block.count(), tiles), epoch);
    Size start = 0;
    for (const Range experts : Tiles({0, a.routing.experts_here}, kRouteTile)) {
      const std::int32_t* const counts = a.counts + tiles * experts.begin;
      const auto choices = block.column_sums(counts, {0, tiles}, experts.size());
      const ExpertRows<Block> rows(block, a, experts, choices, start);
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
    const auto words = receive(block, a, epoch, static_cast<int>(tile / a.tiles), tile % a.tiles);
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
  TANDEM_DEVICE static void place_tile(Block& block, const Args& a, Range experts, const ExpertRows<Block>& rows,
                                       const Numbers<Block>& before, Size tile) {
    const Routing& r = a.routing;
    const int pe = pe_of(block, static_cast<int>(tile / a.tiles));
    const Size begin = tile % a.tiles * kRouteTile;
    const Size choices = Size{block.load_scalar(r.tokens() + pe)} * r.top_k;
    const Range words{begin, begin == 0 ? a.first_words : max(begin, min(begin + kRouteTile, kHeaderWords + choices))};
    const auto keys = block.template load<std::int32_t>(r.message(pe), words).map(key_of(r, block.pe(), experts));
    const auto ranks = block.template load<std::int32_t>(a.ranks + tile * kRouteTile, {0, words.size()});
    const auto first = static_cast<std::int32_t>(pe * r.choices() + begin - kHeaderWords);
    rows.store_places(rows.places(keys, ranks + block.look_up(before, keys)),
                      block.template load<std::int32_t>(a.numbers, {0, words.size()}).map([first](std::int32_t i) {
                        return first + i;
                      }));
  }
};

TANDEM_GPU_KERNEL(Route, 512);

}  // namespace tandem::kernels
