#pragma once
/// The rows of one expert of this PE: their number, and their places by prefix sums over the choices of all PEs.

#include "collectives/experts/routing.h"

namespace tandem::kernels {

constexpr Size kRouteTile = 1792;  // words that 512 threads take at once as lines

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
  Symm<LL128Line> lines;  // [2][PE][1 + 2 * tiles]: the number of tokens, ids, weights
  Signals met;            // [block]
  Epochs epochs;
  const std::int32_t* no_rows = nullptr;  // [kRouteTile]: -1, from the host
  std::int64_t* refused = nullptr;        // [block][2]: choice + 1 and its id, or -1 - expert and its rows
};

/// Returns 0, 1, ... in the layout of `values`.
template <class Block, class Values>
TANDEM_DEVICE auto numbers_of(Block& block, const Values& values) {
  return block.exclusive_sum(values.map([](std::int32_t) { return 1; }));
}

/// Keeps the first note of this block until the host has read it.
template <class Block>
TANDEM_DEVICE void note(Block& block, const RouteArgs& a, std::int64_t what, std::int64_t value) {
  std::int64_t* const noted = a.refused + 2 * block.index();
  if (block.load_scalar(noted) != 0) return;
  block.store_scalar(noted + 1, value);
  block.store_scalar(noted, what);
}

template <class Block>
class ExpertRows {
 public:
  TANDEM_DEVICE ExpertRows(Block& block, const RouteArgs& a, int expert) : block_(block), a_(a), expert_(expert) {}

  /// Counts the rows.
  TANDEM_DEVICE void count() const {
    std::int32_t rows = 0;
    for_choices([&](int, Range, const auto& hits) { rows += block_.sum(hits); });
    if (a_.most_rows > 0 && rows > a_.most_rows) {
      note(block_, a_, -1 - expert_, rows);
      rows = static_cast<std::int32_t>(a_.most_rows);
    }
    block_.store_scalar(a_.routing.counts() + expert_, rows);
  }

  /// Gives every row its place, once the rows of all experts here are counted.
  TANDEM_DEVICE void place() const {
    const Routing& r = a_.routing;
    const Size rows = block_.load_scalar(r.counts() + expert_);
    const auto align = static_cast<std::int32_t>(a_.align);
    Size start = expert_ * a_.most_rows;
    if (a_.most_rows == 0)
      for (const Range tile : Tiles({0, expert_}, kRouteTile))
        start += block_.sum(block_.template load<std::int32_t>(r.counts(), tile).map([align](std::int32_t n) {
          return (n + align - 1) / align * align;
        }));
    const Size end = start + (a_.most_rows > 0 ? a_.most_rows : round_up(rows, a_.align));
    block_.store_scalar(r.starts() + expert_, static_cast<std::int32_t>(start));
    if (expert_ == r.experts_here - 1) block_.store_scalar(r.starts() + expert_ + 1, static_cast<std::int32_t>(end));
    for (const Range tile : Tiles({start + rows, end}, kRouteTile))
      block_.store(r.slots(), tile, block_.template load<std::int32_t>(a_.no_rows, {0, tile.size()}));
    const auto last = static_cast<std::int32_t>(start + rows);
    auto next = static_cast<std::int32_t>(start);
    for_choices([&](int pe, Range tile, const auto& hits) {
      const auto choices = numbers_of(block_, hits);
      const auto places = hits.zip(block_.exclusive_sum(hits), [next, last](std::int32_t hit, std::int32_t before) {
        return hit == 0 ? -1 : next + before < last ? next + before : kNoRoom;
      });
      const auto at = hits.zip(choices, [](std::int32_t hit, std::int32_t i) { return hit == 1 ? i : -1; });
      block_.store_at(r.places(pe) + tile.begin, at, places);
      const auto first = static_cast<std::int32_t>(tile.begin);
      const auto slot = static_cast<std::int32_t>(pe * r.max_tokens);
      const int top_k = r.top_k;
      block_.store_at(r.slots(), places, choices.map([=](std::int32_t i) { return slot + (first + i) / top_k; }));
      next += block_.sum(hits);
    });
  }

 private:
  /// Calls f(PE, choices of a tile, 1 for each of them that is the expert) in the order of rows.
  template <class F>
  TANDEM_DEVICE void for_choices(const F& f) const {
    const Routing& r = a_.routing;
    const std::int32_t wanted = block_.pe() * r.experts_here + expert_;
    const auto tokens = load_few<kMostPes>(block_, static_cast<const std::int32_t*>(r.tokens()), r.pes, 0);
    for (const int pe : block_.pes_from_self()) {
      const Size choices = Size{tokens.of[pe]} * r.top_k;
      for (const Range tile : Tiles({0, choices}, kRouteTile))
        f(pe, tile, block_.template load<std::int32_t>(r.ids(pe), tile).map([wanted](std::int32_t id) {
          return id == wanted ? 1 : 0;
        }));
    }
  }

  Block& block_;
  const RouteArgs& a_;
  const int expert_;
};

}  // namespace tandem::kernels
