#pragma once
/// The places of all PEs' rows here. Every block finds them for itself once the choices of all PEs are there, so no
/// block waits for another one of its PE.

#include <utility>

#include "collectives/experts/choices/row_starts.h"

namespace tandem::kernels {

template <class Block>
class TokenPlaces {
 public:
  using Numbers = typename Block::template FragmentOf<std::int32_t>;

  /// Waits for the choices of all PEs.
  TANDEM_DEVICE TokenPlaces(Block& block, const RouteArgs& a, Epoch epoch)
      : block_(block), a_(a), choices_(count(epoch)), rows_(block, a, {0, a.routing.experts_here}, choices_, 0) {
    for (int part = 0; part < a.parts; ++part) {
      const auto key = places_[part].map([](std::int32_t packed) { return packed < 0 ? -1 : packed >> kRankBits; });
      const auto rank = places_[part].map([](std::int32_t packed) { return packed & kRankMask; });
      places_[part] = rows_.places(key, rank).zip(
          places_[part], [](std::int32_t place, std::int32_t packed) { return packed < 0 ? packed : place; });
    }
  }

  /// Returns the tokens of the PE that is `step` steps from here.
  TANDEM_DEVICE Size tokens(int step) const {
    return header_of(block_.pick(places_[part_of(step)], first_word(step), 1).at(0));
  }

  /// Returns the token's places, -1 for choices whose expert is not here.
  TANDEM_DEVICE Choices<Block, std::int32_t> of(int step, Size token) const {
    const int top_k = a_.routing.top_k;
    return block_.pick(places_[part_of(step)], first_word(step) + kHeaderWords + token * top_k, top_k);
  }

  /// Stores the arrays of the routing that follow from the choices. The last blocks do this.
  TANDEM_DEVICE void store() const {
    rows_.store(choices_);
    for (int part = block_.count() - 1 - block_.index(); part < a_.parts; part += block_.count()) {
      const auto numbers = block_.template load<std::int32_t>(a_.numbers, {0, places_[part].size()});
      rows_.store_places(places_[part], numbers.map(a_.choice_of(block_.pe() + part * a_.pes_of_part)));
    }
  }

 private:
  static constexpr int kRankBits = 16;
  static constexpr std::int32_t kRankMask = (1 << kRankBits) - 1;
  static_assert(kRouteTile < 1 << (31 - kRankBits), "a key and a rank share a word");

  TANDEM_DEVICE int part_of(int step) const { return a_.parts == 1 ? 0 : step / a_.pes_of_part; }
  TANDEM_DEVICE Size first_word(int step) const { return (step - part_of(step) * a_.pes_of_part) * a_.first_words; }

  /// Returns the choices of each expert here. Keeps key and rank of each choice, and words that are no choice of an
  /// expert here as they are, or -1.
  TANDEM_DEVICE Numbers count(Epoch epoch) {
    const Routing& r = a_.routing;
    const Size words_of_part = a_.pes_of_part * a_.first_words;
    Numbers counts;
    for (int part = 0; part < a_.parts; ++part) {
      const auto words = block_.template ll_get<std::int32_t, Index>(a_.first_at(epoch, part * a_.pes_of_part).local(),
                                                                     words_of_part, epoch);
      const auto keys = words.map(key_of(r, block_.pe(), {0, r.experts_here}));
      auto ranked = block_.key_ranks(keys, r.experts_here);
      if (part > 0) {
        ranked.ranks = ranked.ranks + block_.look_up(counts, keys);
        ranked.counts = counts + ranked.counts;
      }
      counts = std::move(ranked.counts);
      const auto packed = keys.zip(
          ranked.ranks, [](std::int32_t key, std::int32_t rank) { return key < 0 ? -1 : key << kRankBits | rank; });
      places_[part] =
          packed.zip(words, [](std::int32_t its, std::int32_t word) { return its < 0 && word < -1 ? word : its; });
    }
    return counts;
  }

  Block& block_;
  const RouteArgs& a_;
  Numbers places_[kChoiceParts];
  const Numbers choices_;
  const RowStarts<Block> rows_;
};

}  // namespace tandem::kernels
