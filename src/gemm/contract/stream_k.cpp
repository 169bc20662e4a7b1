#include "gemm/contract/stream_k.h"

#include <algorithm>
#include <array>
#include <limits>

namespace tandem {

namespace {

constexpr int kMostOthers = 6;

std::int16_t narrow(int value) { return static_cast<std::int16_t>(value); }

/// Tries to finish the last units in `time` steps. The units' own clusters, the last ones, do as many steps as they
/// can. The other clusters, the helpers, take the units' first steps one after the other.
class Sharing {
 public:
  Sharing(const StreamKCost& cost, int depth, int owners, int helpers, int time)
      : cost_(cost), depth_(depth), owners_(owners), helpers_(helpers), time_(time), left_(of_helper()) {}

  /// Returns whether `to` holds the parts of all clusters.
  bool write(StreamK& to) {
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
  struct Chunks {
    int count = 0;
    std::array<int, kMostOthers> helper{}, steps{};
  };

  /// A helper's last sums must arrive before the end.
  int of_helper() const { return time_ - cost_.add; }

  /// With more helpers the unit's own cluster has less time for steps.
  bool share(int unit, StreamK& to) {
    for (int others = 1; others <= kMostOthers; ++others) {
      const int own = std::min(time_ - others * cost_.add, depth_ - cost_.least);
      if (own < cost_.least) return false;
      const Chunks chunks = cut(depth_ - own, others);
      if (chunks.count > 0) return take(unit, depth_ - own, chunks, to);
    }
    return false;
  }

  /// Divides `steps` among helpers with time left, in at most `most` pieces. Returns none if there is not enough time.
  Chunks cut(int steps, int most) const {
    Chunks chunks;
    int left = left_;
    for (int helper = helper_; helper < helpers_ && chunks.count < most; ++helper, left = of_helper()) {
      int count = std::min(steps, left - cost_.give);
      if (count < steps) count = std::min(count, steps - cost_.least);
      if (count < cost_.least) continue;
      chunks.helper[static_cast<std::size_t>(chunks.count)] = helper;
      chunks.steps[static_cast<std::size_t>(chunks.count++)] = count;
      steps -= count;
      if (steps == 0) return chunks;
    }
    return {};
  }

  bool take(int unit, int first_own, const Chunks& chunks, StreamK& to) {
    // A cluster has one place in the workspace.
    if (places_ + chunks.count > owners_ + helpers_ || places_ + chunks.count + owners_ > StreamK::kMostParts)
      return false;
    finishing_[static_cast<std::size_t>(unit)] = {narrow(unit), narrow(first_own), narrow(depth_ - first_own),
                                                  narrow(places_), narrow(chunks.count)};
    int first = 0;
    for (std::size_t i = 0; i < static_cast<std::size_t>(chunks.count); ++i) {
      while (helper_ < chunks.helper[i]) {
        to.begin[++helper_] = narrow(places_);
        left_ = of_helper();
      }
      to.parts[places_] = {narrow(unit), narrow(first), narrow(chunks.steps[i]), narrow(places_), UnitPart::kGives};
      ++places_;
      first += chunks.steps[i];
      left_ -= chunks.steps[i] + cost_.give;
    }
    return true;
  }

  const StreamKCost& cost_;
  const int depth_, owners_, helpers_, time_;
  int helper_ = 0;  // the first helper that may have time
  int left_;        // its remaining time
  int places_ = 0;  // places given so far
  std::array<UnitPart, StreamK::kMostClusters> finishing_{};
};

}  // namespace

StreamKCost StreamKCost::of(int tile_n) {
  // With 128 columns a step takes half as long and sums are half as many, but flags and latencies remain.
  constexpr int kWide = 256;
  StreamKCost cost;
  cost.give = (cost.give * (kWide + tile_n) + 2 * tile_n - 1) / (2 * tile_n);
  cost.add = (cost.add * (kWide + tile_n) + 2 * tile_n - 1) / (2 * tile_n);
  return cost;
}

StreamK split_nothing(int units, int depth) {
  StreamK nothing;
  nothing.whole = units;
  nothing.depth = nothing.steps = depth;
  return nothing;
}

StreamK split_last_wave(int units, int depth, int clusters, const StreamKCost& cost) {
  const int owners = units % clusters;
  if (owners == 0 || clusters > StreamK::kMostClusters || depth > std::numeric_limits<std::int16_t>::max())
    return split_nothing(units, depth);
  const int least = (owners * (depth + cost.give + cost.add) + clusters - 1) / clusters;
  for (int time = least; time + cost.gain <= depth; ++time) {
    StreamK shared = split_nothing(units - owners, depth);
    if (!Sharing(cost, depth, owners, clusters - owners, time).write(shared)) continue;
    shared.steps = time;
    return shared;
  }
  return split_nothing(units, depth);
}

}  // namespace tandem
