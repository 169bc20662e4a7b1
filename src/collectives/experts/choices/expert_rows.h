#pragma once
/// The rows of one expert of this PE: their number, and their places by prefix sums over few choices of all PEs.
///
/// One pass over the choices finds those of the expert and keeps them in order. No place is known before that, since
/// places follow those of earlier experts. An expert with more choices than there is room for reads all choices again.
/// If all choices are received at once, and experts are not aligned, they get their places at once.

#include "collectives/experts/choices/all_choices.h"

namespace tandem::kernels {

template <class Block>
class ExpertRows {
 public:
  TANDEM_DEVICE ExpertRows(Block& block, const RouteArgs& a, Epoch epoch, int expert)
      : block_(block), a_(a), all_(block, a, epoch), expert_(expert) {}

  /// Counts the rows, and those of the experts here before it, as soon as the choices of all PEs have arrived. Keeps
  /// the rows' choices.
  TANDEM_DEVICE void find() {
    const std::int32_t first = a_.routing.first_expert(block_.pe());
    const std::int32_t wanted = first + expert_;
    const auto most = static_cast<std::int32_t>(a_.kept);
    const bool at_once = places_at_once();
    std::int64_t both = 0;
    all_.for_parts([&](const auto& ids, const auto& choices) {
      const auto next = static_cast<std::int32_t>(both & 0xFFFF'FFFF);
      const auto hits = ids.map([wanted](std::int32_t id) { return id == wanted ? 1 : 0; });
      const auto before = block_.exclusive_sum(hits);
      both += block_.sum(ids.map([first, wanted](std::int32_t id) {
        return id == wanted ? std::int64_t{1} : id >= first && id < wanted ? std::int64_t{1} << 32 : std::int64_t{0};
      }));
      if (at_once) {
        count(both);
        const auto start = static_cast<std::int32_t>(begin_rows(rows_));
        place_hits(hits, before, choices, start, start + static_cast<std::int32_t>(rows_));
      } else {
        const auto at = hits.zip(before, [next, most](std::int32_t hit, std::int32_t its) {
          return hit == 1 && next + its < most ? next + its : -1;
        });
        block_.store_at(found(), at, choices);
      }
    });
    if (!at_once) count(both);
  }

  /// Gives every row its place. Experts with aligned first rows need the counts of all experts here.
  TANDEM_DEVICE void place() const {
    if (places_at_once()) return;
    const Size rows = a_.align > 1 ? Size{block_.load_scalar(a_.routing.counts() + expert_)} : rows_;
    const Size choices = a_.align > 1 ? rows : found_;
    const Size start = begin_rows(rows);
    if (choices <= a_.kept)
      place_found(start, rows, choices);
    else
      place_choices(static_cast<std::int32_t>(start), static_cast<std::int32_t>(start + rows));
  }

 private:
  TANDEM_DEVICE bool places_at_once() const { return a_.align == 1 && a_.parts == 1; }

  /// `both`: the choices of this expert, and from bit 32 on those of the experts here before it.
  TANDEM_DEVICE void count(std::int64_t both) {
    before_ = both >> 32;
    rows_ = found_ = both & 0xFFFF'FFFF;
    if (a_.most_rows > 0 && rows_ > a_.most_rows) {
      note(block_, a_, -1 - expert_, rows_);
      rows_ = a_.most_rows;
    }
    block_.store_scalar(a_.routing.counts() + expert_, static_cast<std::int32_t>(rows_));
  }

  /// Returns the first of so many rows, after it has stored it, and the slots of rows that only align.
  TANDEM_DEVICE Size begin_rows(Size rows) const {
    const Routing& r = a_.routing;
    const Size start = first_row();
    const Size end = start + (a_.most_rows > 0 ? a_.most_rows : round_up(rows, a_.align));
    block_.store_scalar(r.starts() + expert_, static_cast<std::int32_t>(start));
    if (expert_ == r.experts_here - 1) block_.store_scalar(r.starts() + expert_ + 1, static_cast<std::int32_t>(end));
    for (const Range tile : Tiles({start + rows, end}, kRouteTile))
      block_.store(r.slots(), tile, block_.template load<std::int32_t>(a_.no_rows, {0, tile.size()}));
    return start;
  }

  TANDEM_DEVICE Size first_row() const {
    if (a_.most_rows > 0) return expert_ * a_.most_rows;
    if (a_.align == 1) return before_;
    Size start = 0;
    const auto align = static_cast<std::int32_t>(a_.align);
    for (const Range tile : Tiles({0, expert_}, kRouteTile))
      start += block_.sum(block_.template load<std::int32_t>(a_.routing.counts(), tile).map([align](std::int32_t n) {
        return (n + align - 1) / align * align;
      }));
    return start;
  }

  TANDEM_DEVICE std::int32_t* found() const { return a_.found + expert_ * a_.kept; }

  /// Gives the kept choices their rows, of which the last ones may have no room.
  TANDEM_DEVICE void place_found(Size start, Size rows, Size choices) const {
    const Routing& r = a_.routing;
    block_.sync();
    for (const Range tile : Tiles({0, choices}, kRouteTile)) {
      const auto at = block_.template load<std::int32_t>(found(), tile);
      const auto next = static_cast<std::int32_t>(start + tile.begin);
      const auto last = static_cast<std::int32_t>(start + rows);
      const auto numbers = block_.template load<std::int32_t>(a_.numbers, {0, tile.size()});
      block_.store_at(r.places(0), at,
                      numbers.map([next, last](std::int32_t i) { return next + i < last ? next + i : kNoRoom; }));
      block_.store_at(r.slots(), numbers.map([next, last](std::int32_t i) { return next + i < last ? next + i : -1; }),
                      at.map(a_.slot_of()));
    }
  }

  TANDEM_DEVICE void place_choices(std::int32_t next, std::int32_t last) const {
    const std::int32_t wanted = a_.routing.first_expert(block_.pe()) + expert_;
    all_.for_parts([&](const auto& ids, const auto& choices) {
      const auto hits = ids.map([wanted](std::int32_t id) { return id == wanted ? 1 : 0; });
      place_hits(hits, block_.exclusive_sum(hits), choices, next, last);
      next += block_.sum(hits);
    });
  }

  /// Gives the choices of this expert rows from `next` on. `before`: their numbers among these choices.
  template <class Hits, class Numbers, class Places>
  TANDEM_DEVICE void place_hits(const Hits& hits, const Numbers& before, const Places& choices, std::int32_t next,
                                std::int32_t last) const {
    const Routing& r = a_.routing;
    const auto places = hits.zip(before, [next, last](std::int32_t hit, std::int32_t its) {
      return hit == 0 ? -1 : next + its < last ? next + its : kNoRoom;
    });
    block_.store_at(r.places(0),
                    hits.zip(choices, [](std::int32_t hit, std::int32_t at) { return hit == 1 ? at : -1; }), places);
    block_.store_at(r.slots(), places, choices.map(a_.slot_of()));
  }

  Block& block_;
  const RouteArgs& a_;
  const AllChoices<Block> all_;
  const int expert_;
  Size rows_ = 0;
  Size found_ = 0;   // choices
  Size before_ = 0;  // rows of the experts here before it
};

}  // namespace tandem::kernels
