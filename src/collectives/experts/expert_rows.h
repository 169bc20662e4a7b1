#pragma once
/// The rows of one expert of this PE: their number, and their places by prefix sums over the choices of all PEs.

#include "collectives/experts/route_lines.h"

namespace tandem::kernels {

template <class Block>
class ExpertRows {
 public:
  TANDEM_DEVICE ExpertRows(Block& block, const RouteArgs& a, Epoch epoch, int expert)
      : block_(block), a_(a), epoch_(epoch), expert_(expert) {}

  /// Counts the rows, and those of the experts here before it, as soon as the choices of all PEs have arrived.
  TANDEM_DEVICE void count() {
    const std::int32_t first = block_.pe() * a_.routing.experts_here;
    const std::int32_t wanted = first + expert_;
    std::int64_t both = 0;
    for_choices([&](const auto& ids, const Part&) {
      both += block_.sum(ids.map([first, wanted](std::int32_t id) {
        return id == wanted ? std::int64_t{1} : id >= first && id < wanted ? std::int64_t{1} << 32 : std::int64_t{0};
      }));
    });
    before_ = both >> 32;
    rows_ = both & 0xFFFF'FFFF;
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
    const Size start = first_row();
    const Size end = start + (a_.most_rows > 0 ? a_.most_rows : round_up(rows, a_.align));
    block_.store_scalar(r.starts() + expert_, static_cast<std::int32_t>(start));
    if (expert_ == r.experts_here - 1) block_.store_scalar(r.starts() + expert_ + 1, static_cast<std::int32_t>(end));
    for (const Range tile : Tiles({start + rows, end}, kRouteTile))
      block_.store(r.slots(), tile, block_.template load<std::int32_t>(a_.no_rows, {0, tile.size()}));
    place_choices(static_cast<std::int32_t>(start), static_cast<std::int32_t>(start + rows));
  }

 private:
  /// Words of messages that are received together: element i is word `first_word + i % words` of the message of the PE
  /// that is `step + i / words` steps from here.
  struct Part {
    int step;
    std::int32_t first_word;
    std::int32_t words;
  };

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

  TANDEM_DEVICE void place_choices(std::int32_t next, std::int32_t last) const {
    const Routing& r = a_.routing;
    const std::int32_t wanted = block_.pe() * r.experts_here + expert_;
    for_choices([&](const auto& ids, const Part& part) {
      const auto hits = ids.map([wanted](std::int32_t id) { return id == wanted ? 1 : 0; });
      const auto numbers = block_.template load<std::int32_t>(a_.numbers, {0, ids.size()});
      const auto places = hits.zip(block_.exclusive_sum(hits), [next, last](std::int32_t hit, std::int32_t before) {
        return hit == 0 ? -1 : next + before < last ? next + before : kNoRoom;
      });
      const int first_pe = block_.pe() + part.step;
      const int pes = r.pes;
      const auto choices = static_cast<std::int32_t>(r.choices());
      const auto pe_of = [=](std::int32_t i) { return (first_pe + i / part.words) % pes; };
      const auto choice_of = [=](std::int32_t i) {
        return part.first_word + i % part.words - static_cast<std::int32_t>(kHeaderWords);
      };
      const auto at = hits.zip(
          numbers, [=](std::int32_t hit, std::int32_t i) { return hit == 1 ? pe_of(i) * choices + choice_of(i) : -1; });
      block_.store_at(r.places(0), at, places);
      const auto most = static_cast<std::int32_t>(r.max_tokens);
      const int top_k = r.top_k;
      block_.store_at(r.slots(), places,
                      numbers.map([=](std::int32_t i) { return pe_of(i) * most + choice_of(i) / top_k; }));
      next += block_.sum(hits);
    });
  }

  /// Calls f(words, part) for the messages of all PEs in the order of rows.
  template <class F>
  TANDEM_DEVICE void for_choices(const F& f) const {
    const int pes = a_.routing.pes;
    const auto words = static_cast<std::int32_t>(a_.first_words());
    for (int step = 0; step < pes; step += a_.pes_at_once()) {
      const Size together = min(a_.pes_at_once(), pes - step);
      const LL128Line* const from = a_.first_at(epoch_, step).local();
      f(block_.template ll_get<std::int32_t, Index>(from, together * words, epoch_), Part{step, 0, words});
      if (a_.tiles() > 1) for_rest(step, f);
    }
  }
  /// Does so for the rest of a message that has several tiles.
  template <class F>
  TANDEM_DEVICE void for_rest(int step, const F& f) const {
    const int pe = (block_.pe() + step) % a_.routing.pes;
    const auto header = block_.template ll_get<std::int32_t, Index>(a_.first_at(epoch_, step).local(), 1, epoch_);
    const Size words = kHeaderWords + Size{header_of(block_.sum(header))} * a_.routing.top_k;
    for (const Range tile : Tiles({kRouteTile, words}, kRouteTile)) {
      const LL128Line* const from = a_.rest_at(epoch_, pe, tile.begin / kRouteTile).local();
      f(block_.template ll_get<std::int32_t, Index>(from, tile.size(), epoch_),
        Part{step, static_cast<std::int32_t>(tile.begin), static_cast<std::int32_t>(kRouteTile)});
    }
  }

  Block& block_;
  const RouteArgs& a_;
  const Epoch epoch_;
  const int expert_;
  Size rows_ = 0;
  Size before_ = 0;  // rows of the experts here before it
};

}  // namespace tandem::kernels
