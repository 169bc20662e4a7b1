#pragma once
/// This PE's choices to all PEs: the first half of the routing kernel.

#include "collectives/experts/choices/route_lines.h"

namespace tandem::kernels {

struct OwnChoices {
  /// Returns the tokens of this PE.
  template <class Block>
  TANDEM_DEVICE static Size tokens(Block& block, const RouteArgs& a) {
    if (a.tokens_on_device == nullptr) return a.tokens;
    return max(0, min(block.load_scalar(a.tokens_on_device), a.tokens));
  }

  template <class Block>
  TANDEM_DEVICE static void send(Block& block, const RouteArgs& a, Epoch epoch) {
    const Size own = tokens(block, a);
    const Size choices = own * a.routing.top_k;
    for (Size i = block.index(); i < a.tiles; i += block.count()) {
      if (i == 0) store_header(block, a, own);
      const Size end = i == 0 ? a.first_words : min((i + 1) * kRouteTile, kHeaderWords + choices);
      if (i * kRouteTile < end) send_ids(block, a, epoch, {i * kRouteTile, end}, choices);
    }
    for_tiles(block.count() - 1 - block.index(), block.count(), choices,
              [&](Size i, Range tile) { send_weights(block, a, epoch, i, tile); });
  }

 private:
  /// The words before this PE's ids, and those behind them in the part that is always sent.
  template <class Block>
  TANDEM_DEVICE static void store_header(Block& block, const RouteArgs& a, Size tokens) {
    const Routing& r = a.routing;
    std::int32_t* const message = r.message(block.pe());
    block.store_scalar(r.tokens() + block.pe(), static_cast<std::int32_t>(tokens));
    block.store_scalar(message, header_of(static_cast<std::int32_t>(tokens)));
    for (const Range none : {Range{1, kHeaderWords}, Range{kHeaderWords + tokens * r.top_k, a.first_words}})
      if (!none.empty()) block.store(message, none, block.template load<std::int32_t>(a.no_rows, {0, none.size()}));
  }

  /// Keeps and sends some words of this PE's message, which has so many ids.
  template <class Block>
  TANDEM_DEVICE static void send_ids(Block& block, const RouteArgs& a, Epoch epoch, Range words, Size choices) {
    const Routing& r = a.routing;
    const int me = block.pe();
    const Range ids{max(0, words.begin - kHeaderWords), min(words.end - kHeaderWords, choices)};
    // -2 stands for an id that is refused. Ids of 64 bits have another layout, so they go through memory.
    if (a.long_ids)
      keep_ids<std::int64_t>(block, a, ids);
    else
      keep_ids<std::int32_t>(block, a, ids);
    block.sync();
    const auto kept = block.template load<std::int32_t>(r.message(me), words);
    const auto sent = kept.map([](std::int32_t id) { return id == -2 ? -1 : id; });
    block.store(r.message(me), words, sent);
    for (const int pe : block.pes_from_self()) {
      const int step = me < pe ? me - pe + r.pes : me - pe;
      const Symm<LL128Line> to =
          words.begin == 0 ? a.first_at(epoch, step) : a.rest_at(epoch, me, words.begin / kRouteTile);
      block.template ll_put_fragment<std::int32_t>(to, sent, epoch, pe);
    }
    note_refused(block, a, words, kept.map([](std::int32_t id) { return id == -2 ? 1 : 0; }));
  }

  template <class Id, class Block>
  TANDEM_DEVICE static void keep_ids(Block& block, const RouteArgs& a, Range tile) {
    const Id experts = a.experts;
    const auto* const ids = static_cast<const Id*>(a.ids);
    for (const Range part : block.template tiles<Id>(tile))
      block.store(a.routing.ids(block.pe()), part, block.template load<Id>(ids, part).map([experts](Id id) {
        return id >= -1 && id < experts ? id : Id{-2};
      }));
  }

  template <class Block, class Values>
  TANDEM_DEVICE static void note_refused(Block& block, const RouteArgs& a, Range words, const Values& is_refused) {
    if (block.sum(is_refused) == 0) return;
    const auto is_first =
        is_refused.zip(block.exclusive_sum(is_refused),
                       [](std::int32_t refused, std::int32_t before) { return refused == 1 && before == 0 ? 1 : 0; });
    const auto numbers = block.template load<std::int32_t>(a.numbers, {0, is_first.size()});
    const Size choice = words.begin - kHeaderWords +
                        block.sum(is_first.zip(numbers, [](std::int32_t one, std::int32_t i) { return one * i; }));
    note(block, a, choice + 1,
         a.long_ids ? block.load_scalar(static_cast<const std::int64_t*>(a.ids) + choice)
                    : block.load_scalar(static_cast<const std::int32_t*>(a.ids) + choice));
  }

  template <class Block>
  TANDEM_DEVICE static void send_weights(Block& block, const RouteArgs& a, Epoch epoch, Size i, Range tile) {
    const Routing& r = a.routing;
    const int me = block.pe();
    const auto weights = a.weights == nullptr
                             ? block.template load<float>(a.no_rows, {0, tile.size()}).map([](float) { return 1.0F; })
                             : block.template load<float>(a.weights, tile);
    block.store(r.weights(me), tile, weights);
    block.template ll_put_peers<float>(a.weights_at(epoch, me, i), weights, epoch);
  }
};

}  // namespace tandem::kernels
