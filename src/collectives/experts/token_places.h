#pragma once
/// The places of one token's rows here, which every block finds for itself once the choices of all PEs are there.
///
/// A place is the number of choices before it in the order of rows. So no block waits for another one of its PE. Four
/// choices are counted at once.

#include "collectives/experts/route_lines.h"

namespace tandem::kernels {

/// A block holds the choices of all PEs in at most so many parts, and counts in so many bits.
constexpr int kChoiceParts = 4;
constexpr int kPlaceBits = 16;

/// Returns the least number of equal parts of all PEs' messages that are received one by one.
TANDEM_DEVICE inline int choice_parts(const RouteArgs& a) {
  int together = a.pes_at_once;
  while (a.routing.pes % together != 0) --together;
  return a.routing.pes / together;
}

/// Returns whether a block can hold and count the choices of all PEs.
inline bool fit_a_block(const RouteArgs& a) {
  constexpr Size kMost = (Size{1} << kPlaceBits) - 1;
  return a.tiles == 1 && choice_parts(a) <= kChoiceParts && a.routing.experts_here <= kMost &&
         a.routing.pes * a.routing.max_tokens * a.routing.top_k <= kMost;
}

template <class Block>
class TokenPlaces {
 public:
  /// Waits for the choices of all PEs.
  TANDEM_DEVICE TokenPlaces(Block& block, const RouteArgs& a, Epoch epoch)
      : block_(block), a_(a), parts_(choice_parts(a)), words_of_part_(a.routing.pes / parts_ * a.first_words) {
    numbers_ = block.template load<std::int32_t>(a.numbers, {0, words_of_part_});
    for (int i = 0; i < kParts; ++i)
      if (i < parts_)
        words_[i] = block.template ll_get<std::int32_t, Index>(a.first_at(epoch, i * a.routing.pes / parts_).local(),
                                                               words_of_part_, epoch);
  }

  /// Returns the tokens of the PE that is `step` steps from here.
  TANDEM_DEVICE Size tokens(int step) const {
    const auto at = static_cast<std::int32_t>(step * a_.first_words);
    return total([at](std::int32_t word, std::int32_t i) { return i == at ? std::int64_t{header_of(word)} : 0; });
  }

  /// Returns the token's places, -1 for choices whose expert is not here. `is_in_place`: all other places are 0.
  TANDEM_DEVICE Choices<std::int32_t> of(int step, Size token, bool is_in_place) const {
    const int top_k = a_.routing.top_k;
    const auto first = static_cast<std::int32_t>(step * a_.first_words + kHeaderWords + token * top_k);
    Choices<std::int32_t> places;
    for (std::int32_t& place : places.of) place = -1;
    for (int some = 0; some < top_k; some += kAtOnce) {
      const std::uint64_t experts = experts_of(first + some, min(kAtOnce, top_k - some));
      if (experts == 0) continue;
      const std::uint64_t before = is_in_place ? 0 : before_of(first + some, experts);
      for (int k = 0; k < kMostTopK; ++k)
        if (k >= some && k < some + kAtOnce) places.of[k] = place_of(field(experts, k - some), field(before, k - some));
    }
    return places;
  }

 private:
  static constexpr int kParts = kChoiceParts;
  static constexpr int kBits = kPlaceBits;
  static constexpr int kAtOnce = 64 / kBits;
  using Words =
      decltype(std::declval<Block&>().template load<std::int32_t>(static_cast<const std::int32_t*>(nullptr), Range{}));

  TANDEM_DEVICE static std::uint64_t field(std::uint64_t fields, int i) {
    return fields >> i * kBits & ((std::uint64_t{1} << kBits) - 1);
  }

  /// The number of an expert among those here, from 1 on; 0 for others and for words that are no expert.
  TANDEM_DEVICE static std::int32_t number_here(std::int32_t word, std::int32_t first, std::int32_t experts) {
    return word >= first && word < first + experts ? word - first + 1 : 0;
  }

  /// The numbers of the experts here in some words of a token.
  TANDEM_DEVICE std::uint64_t experts_of(std::int32_t first_word, std::int32_t words) const {
    const std::int32_t experts = a_.routing.experts_here;
    const std::int32_t first = a_.routing.first_expert(block_.pe());
    return total([=](std::int32_t word, std::int32_t i) {
      const std::int32_t at = i - first_word;
      const std::int32_t number = number_here(word, first, experts);
      return at >= 0 && at < words ? static_cast<std::int64_t>(static_cast<std::uint64_t>(number) << at * kBits) : 0;
    });
  }

  /// The rows before those of these experts and words: of the same expert alone, where each expert has a part.
  TANDEM_DEVICE std::uint64_t before_of(std::int32_t first_word, std::uint64_t wanted) const {
    const std::int32_t experts = a_.routing.experts_here;
    const std::int32_t first = a_.routing.first_expert(block_.pe());
    const bool is_sorted = a_.most_rows == 0;
    return total([=](std::int32_t word, std::int32_t i) {
      const std::int32_t number = number_here(word, first, experts);
      std::uint64_t counts = 0;
      for (int j = 0; j < kAtOnce; ++j) {
        const auto its = static_cast<std::int32_t>(field(wanted, j));
        const bool is_before = number != 0 && ((is_sorted && number < its) || (number == its && i < first_word + j));
        counts += std::uint64_t{is_before ? 1U : 0U} << j * kBits;
      }
      return static_cast<std::int64_t>(counts);
    });
  }

  TANDEM_DEVICE std::int32_t place_of(std::uint64_t expert, std::uint64_t before) const {
    if (expert == 0) return -1;
    if (a_.most_rows == 0) return static_cast<std::int32_t>(before);
    const auto rows = static_cast<Size>(before);
    return rows < a_.most_rows ? static_cast<std::int32_t>((static_cast<Size>(expert) - 1) * a_.most_rows + rows)
                               : kNoRoom;
  }

  /// Returns the sum of f(word, its number) over the messages of all PEs.
  template <class F>
  TANDEM_DEVICE std::uint64_t total(const F& f) const {
    std::int64_t sum = 0;
    for (int part = 0; part < kParts; ++part) {
      if (part >= parts_) continue;
      const auto offset = static_cast<std::int32_t>(part * words_of_part_);
      sum += block_.sum(
          words_[part].zip(numbers_, [=](std::int32_t word, std::int32_t i) { return f(word, offset + i); }));
    }
    return static_cast<std::uint64_t>(sum);
  }

  Block& block_;
  const RouteArgs& a_;
  const int parts_;
  const Size words_of_part_;
  Words words_[kParts];
  Words numbers_;
};

}  // namespace tandem::kernels
