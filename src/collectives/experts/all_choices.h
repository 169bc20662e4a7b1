#pragma once
/// The choices of all PEs in the order of rows, as packets that this block receives tile by tile.

#include "collectives/experts/route_lines.h"

namespace tandem::kernels {

template <class Block>
class AllChoices {
 public:
  TANDEM_DEVICE AllChoices(Block& block, const RouteArgs& a, Epoch epoch) : block_(block), a_(a), epoch_(epoch) {}

  /// Calls f(words, choices) for the messages of all PEs in the order of rows. `choices` are the places of the words in
  /// Routing::places, which mean nothing for words that are no choices.
  template <class F>
  TANDEM_DEVICE void for_parts(const F& f) const {
    const int pes = a_.routing.pes;
    const auto words = static_cast<std::int32_t>(a_.first_words());
    const int at_once = min(a_.pes_at_once(), pes);
    const auto numbers =
        block_.template load<std::int32_t>(a_.numbers, {0, a_.tiles() > 1 ? kRouteTile : Size{at_once} * words});
    for (int step = 0; step < pes; step += at_once) {
      const Size together = min(at_once, pes - step);
      const LL128Line* const from = a_.first_at(epoch_, step).local();
      const auto ids = block_.template ll_get<std::int32_t, Index>(from, together * words, epoch_);
      f(ids, choices_of(Part{step, 0, words}, numbers, ids.size()));
      if (a_.tiles() > 1) for_rest(step, numbers, f);
    }
  }

 private:
  /// Words of messages that are received together: element i is word `first_word + i % words` of the message of the PE
  /// that is `step + i / words` steps from here.
  struct Part {
    int step;
    std::int32_t first_word;
    std::int32_t words;
  };

  /// Does so for the rest of a message that has several tiles.
  template <class Numbers, class F>
  TANDEM_DEVICE void for_rest(int step, const Numbers& numbers, const F& f) const {
    const int pe = (block_.pe() + step) % a_.routing.pes;
    const auto header = block_.template ll_get<std::int32_t, Index>(a_.first_at(epoch_, step).local(), 1, epoch_);
    const Size words = kHeaderWords + Size{header_of(block_.sum(header))} * a_.routing.top_k;
    for (const Range tile : Tiles({kRouteTile, words}, kRouteTile)) {
      const LL128Line* const from = a_.rest_at(epoch_, pe, tile.begin / kRouteTile).local();
      const auto ids = block_.template ll_get<std::int32_t, Index>(from, tile.size(), epoch_);
      const Part part{step, static_cast<std::int32_t>(tile.begin), static_cast<std::int32_t>(kRouteTile)};
      f(ids, choices_of(part, numbers, ids.size()));
    }
  }

  /// `numbers`: 0, 1, ... for most parts. A shorter part loads its own.
  template <class Numbers>
  TANDEM_DEVICE auto choices_of(const Part& part, const Numbers& numbers, Size words) const {
    const int first_pe = block_.pe() + part.step;
    const int pes = a_.routing.pes;
    const auto choices = static_cast<std::int32_t>(a_.routing.choices());
    const auto choice_of = [=](std::int32_t i) {
      return (first_pe + i / part.words) % pes * choices + part.first_word + i % part.words -
             static_cast<std::int32_t>(kHeaderWords);
    };
    if (words == numbers.size()) return numbers.map(choice_of);
    return block_.template load<std::int32_t>(a_.numbers, {0, words}).map(choice_of);
  }

  Block& block_;
  const RouteArgs& a_;
  const Epoch epoch_;
};

}  // namespace tandem::kernels
