#pragma once
/// The choices of all PEs on their way, as lines of packets: the arguments of the routing kernel and its places.

#include "collectives/experts/routing.h"

namespace tandem::kernels {

/// Words that 512 threads take at once as lines.
constexpr Size kRouteTile = 1792;
constexpr Size kRouteLines = kRouteTile / kLineWords;
/// The most parts in which a block holds the choices of all PEs.
constexpr int kChoiceParts = 4;

struct RouteArgs {
  const void* ids = nullptr;
  const float* weights = nullptr;
  const std::int32_t* tokens_on_device = nullptr;
  Size tokens = 0;
  int experts = 0;
  bool long_ids = false;
  Size most_rows = 0;  // of an expert, each of which has so many; 0: experts lie behind one another
  Size align = 1;      // of an expert's first row
  Routing routing;
  Symm<LL128Line> first;  // [2][step to its PE][first_lines]: the begin of each PE's message, always whole
  Symm<LL128Line> rest;   // [2][PE][tiles][kRouteLines]: the rest of messages
  Symm<LL128Line> lines;  // [2][PE][tiles][kRouteLines]: weights
  Signals met;            // [block]
  Epochs epochs;
  const std::int32_t* no_rows = nullptr;  // [kRouteTile]: -1, from the host
  const std::int32_t* numbers = nullptr;  // [kRouteTile]: 0, 1, ..., from the host
  std::int32_t* counts = nullptr;         // [some experts here][tile of all PEs][expert]: choices
  std::int32_t* ranks = nullptr;          // [tile of all PEs][kRouteTile]: of choices among those of their expert
  std::int32_t* found = nullptr;          // [expert here][kept]: its first choices, as places in Routing::places
  Size kept = 0;                          // choices of an expert that are found once
  std::int64_t* refused = nullptr;        // [block][2]: choice + 1 and its id, or -1 - expert and its rows
  Size first_words = 0;                   // of a PE's message that are always sent
  Size first_lines = 0;
  Size tiles = 0;           // of a PE's message
  bool is_at_once = false;  // whether a block holds the choices of all PEs
  int parts = 1;            // of all PEs' messages, if so
  int pes_of_part = 1;
  Divider by_first_words, by_choices, by_top_k;

  /// Sets what follows from the routing's numbers.
  void complete() {
    const Size words = kHeaderWords + routing.choices();
    first_words = min(words, kRouteTile);
    first_lines = first_words / kLineWords;
    tiles = ceil_div(words, kRouteTile);
    pes_of_part = static_cast<int>(min(kRouteTile / first_words, routing.pes));
    while (routing.pes % pes_of_part != 0) --pes_of_part;
    parts = routing.pes / pes_of_part;
    is_at_once = tiles == 1 && parts <= kChoiceParts && routing.experts_here <= kRouteTile;
    by_first_words = Divider(first_words);
    by_choices = Divider(routing.choices());
    by_top_k = Divider(routing.top_k);
  }

  /// A function from a choice's place to the slot of its token.
  TANDEM_DEVICE auto slot_of() const {
    const auto choices = static_cast<std::int32_t>(routing.choices());
    const auto most = static_cast<std::int32_t>(routing.max_tokens);
    return [=, by_choices = by_choices, by_top_k = by_top_k](std::int32_t at) {
      const std::int32_t pe = by_choices(at);
      return pe * most + by_top_k(at - pe * choices);
    };
  }
  /// A function from a word's number in a part to its choice. The part has whole messages behind one another, that of
  /// `first_pe` first, a PE's number or that plus all PEs.
  TANDEM_DEVICE auto choice_of(int first_pe) const {
    const int pes = routing.pes;
    const auto words = static_cast<std::int32_t>(first_words);
    const auto choices = static_cast<std::int32_t>(routing.choices());
    return [=, by_words = by_first_words](std::int32_t i) {
      const std::int32_t later = by_words(i);
      const std::int32_t pe = first_pe + later;
      return (pe < pes ? pe : pe - pes) * choices + i - later * words - static_cast<std::int32_t>(kHeaderWords);
    };
  }
  TANDEM_DEVICE Symm<LL128Line> first_at(Epoch epoch, int step) const {
    return first + (static_cast<Size>(epoch % 2) * routing.pes + step) * first_lines;
  }
  TANDEM_DEVICE Symm<LL128Line> rest_at(Epoch epoch, int pe, Size tile) const {
    return rest + tile_at(epoch, pe, tile);
  }
  TANDEM_DEVICE Symm<LL128Line> weights_at(Epoch epoch, int pe, Size tile) const {
    return lines + tile_at(epoch, pe, tile);
  }

 private:
  TANDEM_DEVICE Size tile_at(Epoch epoch, int pe, Size tile) const {
    return ((static_cast<Size>(epoch % 2) * routing.pes + pe) * tiles + tile) * kRouteLines;
  }
};

/// Returns the choices of an expert that are kept: those of equally popular experts, times twice the number of PEs with
/// other experts.
TANDEM_DEVICE inline Size most_kept(const Routing& r) {
  return 2 * ceil_div(r.pes * r.max_tokens * r.top_k, r.experts_here);
}

/// Calls f(tile's number, choices) for every `step`th tile of a PE's choices.
template <class F>
TANDEM_DEVICE void for_tiles(Size first, Size step, Size choices, const F& f) {
  for (Size i = first; i * kRouteTile < choices; i += step)
    f(i, Range{i * kRouteTile, min((i + 1) * kRouteTile, choices)});
}

/// Keeps the first note of this block until the host has read it.
template <class Block>
TANDEM_DEVICE void note(Block& block, const RouteArgs& a, std::int64_t what, std::int64_t value) {
  std::int64_t* const noted = a.refused + 2 * block.index();
  if (block.load_scalar(noted) != 0) return;
  block.store_scalar(noted + 1, value);
  block.store_scalar(noted, what);
}

}  // namespace tandem::kernels
