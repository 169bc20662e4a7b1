#pragma once
/// The rows of some experts of this PE, from the numbers of their choices, and the arrays of the routing.

#include "collectives/experts/choices/route_lines.h"

namespace tandem::kernels {

/// Returns a function from a word of a message to the number of its expert among some here, -1 for other words.
TANDEM_DEVICE inline auto key_of(const Routing& r, int pe, Range experts) {
  const std::int32_t first = r.first_expert(pe) + static_cast<std::int32_t>(experts.begin);
  const auto count = static_cast<std::int32_t>(experts.size());
  return [first, count](std::int32_t word) { return word >= first && word < first + count ? word - first : -1; };
}

template <class Block>
class RowStarts {
 public:
  using Numbers = typename Block::template FragmentOf<std::int32_t>;

  /// `choices`: of each of the experts. `start`: the first row, if experts have no parts of their own.
  TANDEM_DEVICE RowStarts(Block& block, const RouteArgs& a, Range experts, const Numbers& choices, Size start)
      : block_(block), a_(a), experts_(experts) {
    const auto most = static_cast<std::int32_t>(a.most_rows);
    if (most > 0) {
      const auto first = static_cast<std::int32_t>(experts.begin);
      rows_ = choices.map([most](std::int32_t n) { return n < most ? n : most; });
      starts_ = numbers(experts.size()).map([first, most](std::int32_t i) { return (first + i) * most; });
      end_ = experts.end * a.most_rows;
    } else {
      const auto from = static_cast<std::int32_t>(start);
      const auto aligned = choices.map([align = static_cast<std::int32_t>(a.align)](std::int32_t n) {
        return align == 1 ? n : (n + align - 1) / align * align;
      });
      rows_ = choices.copy();
      starts_ = block.exclusive_sum(aligned).map([from](std::int32_t before) { return from + before; });
      end_ = start + block.sum(aligned);
    }
  }

  /// The end of the rows, those that only align included.
  TANDEM_DEVICE Size end() const { return end_; }

  /// Returns the rows of choices with these keys, each of which is so many-th of its expert.
  TANDEM_DEVICE Numbers places(const Numbers& keys, const Numbers& its_number) const {
    const auto most = static_cast<std::int32_t>(a_.most_rows);
    const auto within = keys.zip(its_number, [most](std::int32_t key, std::int32_t number) {
      return key < 0 ? -1 : most > 0 && number >= most ? kNoRoom : number;
    });
    return block_.look_up(starts_, keys).zip(within, [](std::int32_t start, std::int32_t number) {
      return number < 0 ? number : start + number;
    });
  }

  /// Stores numbers and first rows of the experts, and the slots of rows that only align. Each block has a share of the
  /// latter; the last one does the rest.
  TANDEM_DEVICE void store(const Numbers& choices) const {
    const Routing& r = a_.routing;
    if (block_.index() == block_.count() - 1) {
      block_.store(r.counts() + experts_.begin, {0, experts_.size()}, rows_);
      block_.store(r.starts() + experts_.begin, {0, experts_.size()}, starts_);
      if (experts_.end == r.experts_here)
        block_.store_scalar(r.starts() + experts_.end, static_cast<std::int32_t>(end_));
      if (a_.most_rows > 0) note_lost(choices);
    }
    if (a_.most_rows == 0 && a_.align == 1) return;
    for (Size expert = block_.index(); expert < experts_.size(); expert += block_.count()) store_empty(expert);
  }

  /// Stores the places of choices, which are numbers in Routing::places, and their slots.
  TANDEM_DEVICE void store_places(const Numbers& places, const Numbers& choices) const {
    const Routing& r = a_.routing;
    block_.store_at(
        r.places(0),
        places.zip(choices, [](std::int32_t place,
                               std::int32_t choice) { return place >= 0 || place == kNoRoom ? choice : -1; }),
        places);
    block_.store_at(r.slots(), places, choices.map(a_.slot_of()));
  }

 private:
  TANDEM_DEVICE Numbers numbers(Size count) const { return block_.template load<std::int32_t>(a_.numbers, {0, count}); }

  TANDEM_DEVICE void store_empty(Size expert) const {
    const Size start = block_.pick(starts_, expert, 1).at(0);
    const Size rows = block_.pick(rows_, expert, 1).at(0);
    const Size end = start + (a_.most_rows > 0 ? a_.most_rows : round_up(rows, a_.align));
    for (const Range tile : Tiles({start + rows, end}, kRouteTile))
      block_.store(a_.routing.slots(), tile, block_.template load<std::int32_t>(a_.no_rows, {0, tile.size()}));
  }

  /// Notes an expert with more choices than rows.
  TANDEM_DEVICE void note_lost(const Numbers& choices) const {
    const auto lost = choices.zip(rows_, [](std::int32_t n, std::int32_t rows) { return n > rows ? 1 : 0; });
    if (block_.sum(lost) == 0) return;
    for (Size expert = experts_.size() - 1; expert >= 0; --expert) {
      if (block_.pick(lost, expert, 1).at(0) == 0) continue;
      note(block_, a_, -1 - (experts_.begin + expert), block_.pick(choices, expert, 1).at(0));
      return;
    }
  }

  Block& block_;
  const RouteArgs& a_;
  const Range experts_;
  Size end_ = 0;
  Numbers rows_;
  Numbers starts_;
};

}  // namespace tandem::kernels
