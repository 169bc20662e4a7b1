#include "gemm/contract/shared_depth.h"

#include <algorithm>
#include <array>
#include <limits>

namespace tandem {

namespace {

constexpr int kMostOthers = 6;

std::int16_t narrow(int value) { return static_cast<std::int16_t>(value); }

/// Tries to have the last units done in `time` steps: the units' own clusters, the last ones, do as many steps as they
/// can; the others, the helpers, take the units' first steps in turn.
class Sharing {
 public:
  Sharing(const SharingCost& cost, int depth, int owners, int helpers, int time)
      : cost_(cost), depth_(depth), owners_(owners), helpers_(helpers), time_(time), left_(of_helper()) {}

  /// Whether `to` has become the parts of all clusters.
  bool write(SharedDepth& to) {
    for (int unit = 0; unit < owners_; ++unit)
      if (!share(unit, to)) return false;
    while (helper_ < helpers_) to.begin[++helper_] = narrow(places_);
    for (int unit = 0; unit < owners_; ++unit) {
      to.parts[places_ + unit] = finishing_[static_cast<std::size_t>(unit)];
      to.begin[helpers_ + unit + 1] = narrow(places_ + unit + 1);
    }
    to.places = places_;
    return true;
  }

 private:
  struct Pieces {
    int count = 0;
    std::array<int, kMostOthers> helper{}, steps{};
  };

  /// The last sums have to be there before the end.
  int of_helper() const { return time_ - cost_.add; }

  /// The more parts others take, the less time the unit's own cluster has for steps.
  bool share(int unit, SharedDepth& to) {
    for (int others = 1; others <= kMostOthers; ++others) {
      const int own = std::min(time_ - others * cost_.add, depth_ - cost_.least);
      if (own < cost_.least) return false;
      const Pieces pieces = cut(depth_ - own, others);
      if (pieces.count > 0) return take(unit, depth_ - own, pieces, to);
    }
    return false;
  }

  /// `steps` among the helpers that have time left, in at most `most` pieces; none: there is not enough.
  Pieces cut(int steps, int most) const {
    Pieces pieces;
    int left = left_;
    for (int helper = helper_; helper < helpers_ && pieces.count < most; ++helper, left = of_helper()) {
      int count = std::min(steps, left - cost_.give);
      if (count < steps) count = std::min(count, steps - cost_.least);
      if (count < cost_.least) continue;
      pieces.helper[static_cast<std::size_t>(pieces.count)] = helper;
      pieces.steps[static_cast<std::size_t>(pieces.count++)] = count;
      steps -= count;
      if (steps == 0) return pieces;
    }
    return {};
  }

  bool take(int unit, int first_own, const Pieces& pieces, SharedDepth& to) {
    // A cluster has one place in the workspace.
    if (places_ + pieces.count > owners_ + helpers_ || places_ + pieces.count + owners_ > SharedDepth::kMostParts)
      return false;
    finishing_[static_cast<std::size_t>(unit)] = {narrow(unit), narrow(first_own), narrow(depth_ - first_own),
                                                  narrow(places_), narrow(pieces.count)};
    int first = 0;
    for (std::size_t i = 0; i < static_cast<std::size_t>(pieces.count); ++i) {
      while (helper_ < pieces.helper[i]) {
        to.begin[++helper_] = narrow(places_);
        left_ = of_helper();
      }
      to.parts[places_] = {narrow(unit), narrow(first), narrow(pieces.steps[i]), narrow(places_), UnitPart::kGives};
      ++places_;
      first += pieces.steps[i];
      left_ -= pieces.steps[i] + cost_.give;
    }
    return true;
  }

  const SharingCost& cost_;
  const int depth_, owners_, helpers_, time_;
  int helper_ = 0;  // the first one that may have time
  int left_;        // of its time
  int places_ = 0;  // given so far
  std::array<UnitPart, SharedDepth::kMostClusters> finishing_{};
};

}  // namespace

SharingCost SharingCost::of(int tile_n) {
  // Of 128 columns a step takes half as long, and sums are half as many; but there are flags and latencies besides.
  constexpr int kWide = 256;
  SharingCost cost;
  cost.give = (cost.give * (kWide + tile_n) + 2 * tile_n - 1) / (2 * tile_n);
  cost.add = (cost.add * (kWide + tile_n) + 2 * tile_n - 1) / (2 * tile_n);
  return cost;
}

SharedDepth share_nothing(int units, int depth) {
  SharedDepth nothing;
  nothing.whole = units;
  nothing.depth = nothing.steps = depth;
  return nothing;
}

SharedDepth share_depth(int units, int depth, int clusters, const SharingCost& cost) {
  const int owners = units % clusters;
  if (owners == 0 || clusters > SharedDepth::kMostClusters || depth > std::numeric_limits<std::int16_t>::max())
    return share_nothing(units, depth);
  const int least = (owners * (depth + cost.give + cost.add) + clusters - 1) / clusters;
  for (int time = least; time + cost.gain <= depth; ++time) {
    SharedDepth shared = share_nothing(units - owners, depth);
    if (!Sharing(cost, depth, owners, clusters - owners, time).write(shared)) continue;
    shared.steps = time;
    return shared;
  }
  return share_nothing(units, depth);
}

}  // namespace tandem
