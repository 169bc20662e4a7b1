#pragma once
/// The rows of one expert of this PE: their number, and their places by prefix sums over the choices of all PEs.
///
/// One pass over the choices finds those of the expert and keeps them in order. No place is known before that, since
/// places follow those of earlier experts. An expert with more choices than there is room for reads all choices again.

#include "collectives/experts/all_choices.h"

namespace tandem::kernels {

/// Returns the choices of an expert that are kept: those of equally popular experts, times twice the number of PEs.
TANDEM_DEVICE inline Size most_kept(const Routing& r) {
  return 2 * ceil_div(r.pes * r.max_tokens * r.top_k, r.experts_here);
}

template <class Block>
class ExpertRows {
 public:
  TANDEM_DEVICE ExpertRows(Block& block, const RouteArgs& a, Epoch epoch, int expert)
      : block_(block), a_(a), all_(block, a, epoch), expert_(expert) {}

  /// Counts the rows, and those of the experts here before it, as soon as the choices of all PEs have arrived. Keeps
  /// the rows' choices.
  TANDEM_DEVICE void find() {
    const std::int32_t first = block_.pe() * a_.routing.experts_here;
    const std::int32_t wanted = first + expert_;
    const auto most = static_cast<std::int32_t>(a_.kept);
    std::int64_t both = 0;
    all_.for_parts([&](const auto& ids, const auto& choices) {
      const auto next = static_cast<std::int32_t>(both & 0xFFFF'FFFF);
      const auto hits = ids.map([wanted](std::int32_t id) { return id == wanted ? 1 : 0; });
      const auto at = hits.zip(block_.exclusive_sum(hits), [next, most](std::int32_t hit, std::int32_t before) {
        return hit == 1 && next + before < most ? next + before : -1;
      });
      block_.store_at(found(), at, choices);
      both += block_.sum(ids.map([first, wanted](std::int32_t id) {
        return id == wanted ? std::int64_t{1} : id >= first && id < wanted ? std::int64_t{1} << 32 : std::int64_t{0};
      }));
    });
    before_ = both >> 32;
    rows_ = found_ = both & 0xFFFF'FFFF;
    if (a_.most_rows > 0 && rows_ > a_.most_rows) {
      note(block_, a_, -1 - expert_, rows_);
      rows_ = a_.most_rows;
    }
    block_.store_scalar(a_.routing.counts() + expert_, static_cast<std::int32_t>(rows_));
  }

  /// Gives every row its place. Experts with aligned first rows need the counts of all experts here.
  TANDEM_DEVICE void place() const {
    const Routing& r = a_.routing;
    const Size rows = a_.align > 1 ? Size{block_.load_scalar(r.counts() + expert_)} : rows_;
    const Size choices = a_.align > 1 ? rows : found_;
    const Size start = first_row();
    const Size end = start + (a_.most_rows > 0 ? a_.most_rows : round_up(rows, a_.align));
    block_.store_scalar(r.starts() + expert_, static_cast<std::int32_t>(start));
    if (expert_ == r.experts_here - 1) block_.store_scalar(r.starts() + expert_ + 1, static_cast<std::int32_t>(end));
    for (const Range tile : Tiles({start + rows, end}, kRouteTile))
      block_.store(r.slots(), tile, block_.template load<std::int32_t>(a_.no_rows, {0, tile.size()}));
    if (choices <= a_.kept)
      place_found(start, rows, choices);
    else
      place_choices(static_cast<std::int32_t>(start), static_cast<std::int32_t>(start + rows));
  }

 private:
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

  /// The slot of the token of a choice, given the choice's place.
  TANDEM_DEVICE auto slot_of() const {
    const auto choices = static_cast<std::int32_t>(a_.routing.choices());
    const auto most = static_cast<std::int32_t>(a_.routing.max_tokens);
    const int top_k = a_.routing.top_k;
    return [=](std::int32_t at) { return at / choices * most + at % choices / top_k; };
  }

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
                      at.map(slot_of()));
    }
  }

  TANDEM_DEVICE void place_choices(std::int32_t next, std::int32_t last) const {
    const Routing& r = a_.routing;
    const std::int32_t wanted = block_.pe() * r.experts_here + expert_;
    all_.for_parts([&](const auto& ids, const auto& choices) {
      const auto hits = ids.map([wanted](std::int32_t id) { return id == wanted ? 1 : 0; });
      const auto places = hits.zip(block_.exclusive_sum(hits), [next, last](std::int32_t hit, std::int32_t before) {
        return hit == 0 ? -1 : next + before < last ? next + before : kNoRoom;
      });
      block_.store_at(r.places(0),
                      hits.zip(choices, [](std::int32_t hit, std::int32_t at) { return hit == 1 ? at : -1; }), places);
      block_.store_at(r.slots(), places, choices.map(slot_of()));
      next += block_.sum(hits);
    });
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
