#pragma once
/// A few choices of all PEs in the order of rows, as packets that this block receives part by part.

#include "collectives/experts/choices/route_lines.h"

namespace tandem::kernels {

template <class Block>
class AllChoices {
 public:
  TANDEM_DEVICE AllChoices(Block& block, const RouteArgs& a, Epoch epoch) : block_(block), a_(a), epoch_(epoch) {}

  /// Calls f(words, choices) for the messages of all PEs in the order of rows. `choices` are the places of the words in
  /// Routing::places, which mean nothing for words that are no choices.
  template <class F>
  TANDEM_DEVICE void for_parts(const F& f) const {
    const Size words = a_.pes_of_part * a_.first_words;
    const auto numbers = block_.template load<std::int32_t>(a_.numbers, {0, words});
    for (int step = 0; step < a_.routing.pes; step += a_.pes_of_part) {
      const auto ids = block_.template ll_get<std::int32_t, Index>(a_.first_at(epoch_, step).local(), words, epoch_);
      f(ids, numbers.map(a_.choice_of(block_.pe() + step)));
    }
  }

 private:
  Block& block_;
  const RouteArgs& a_;
  const Epoch epoch_;
};

}  // namespace tandem::kernels
