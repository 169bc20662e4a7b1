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
    const Size first_words = a_.first_words;
    auto numbers = block_.template load<std::int32_t>(a_.numbers, {0, a_.pes_at_once * first_words});
    for (int step = 0; step < a_.routing.pes; step += a_.pes_at_once) {
      const int pe = (block_.pe() + step) % a_.routing.pes;
      Size words = min(a_.pes_at_once, a_.routing.pes - step) * first_words;
      for (Size begin = 0; begin < words; begin += kRouteTile) {
        const LL128Line* const from =
            (begin == 0 ? a_.first_at(epoch_, step) : a_.rest_at(epoch_, pe, begin / kRouteTile)).local();
        const auto ids = block_.template ll_get<std::int32_t, Index>(from, min(words - begin, kRouteTile), epoch_);
        if (ids.size() != numbers.size()) numbers = block_.template load<std::int32_t>(a_.numbers, {0, ids.size()});
        if (a_.tiles > 1 && begin == 0) words = words_of_message(ids, numbers);
        f(ids, numbers.map(choice_of(step, begin)));
      }
    }
  }

 private:
  /// Returns the words of the message that has these first ones.
  template <class Words, class Numbers>
  TANDEM_DEVICE Size words_of_message(const Words& words, const Numbers& numbers) const {
    const auto tokens =
        block_.sum(words.zip(numbers, [](std::int32_t word, std::int32_t i) { return i == 0 ? header_of(word) : 0; }));
    return kHeaderWords + Size{tokens} * a_.routing.top_k;
  }

  /// The choice of word i of a part, which begins with word `begin` of the message of the PE that is `step` steps from
  /// here. First parts of several PEs lie behind one another.
  TANDEM_DEVICE auto choice_of(int step, Size begin) const {
    const int first_pe = block_.pe() + step;
    const int pes = a_.routing.pes;
    const auto words = static_cast<std::int32_t>(a_.first_words);
    const auto choices = static_cast<std::int32_t>(a_.routing.choices());
    const auto first = static_cast<std::int32_t>(begin - kHeaderWords);
    return [=, by_words = a_.by_first_words](std::int32_t i) {
      const std::int32_t later = by_words(i);
      const std::int32_t pe = first_pe + later;
      return (pe < pes ? pe : pe - pes) * choices + first + i - later * words;
    };
  }

  Block& block_;
  const RouteArgs& a_;
  const Epoch epoch_;
};

}  // namespace tandem::kernels
