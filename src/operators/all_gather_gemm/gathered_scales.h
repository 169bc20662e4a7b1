#pragma once
/// The gather of the scales of A's rows. They are 4 bytes for each row of K elements, so they go first and as a whole.

#include "operators/plan/operator.h"
#include "tandem/collectives.h"

namespace tandem::ops {

class GatheredScales {
 public:
  /// Gathers nothing unless A has a scale for each row.
  GatheredScales(World& world, const Settings& settings);

  /// Enqueues the gather of `m` scales, of which `own` are this PE's.
  void gather(Stream& main, const float* own, Size m);
  /// Returns the scales of all rows; null if none were gathered.
  const float* all() const { return gather_ ? all_.local() : nullptr; }

 private:
  Team team_;
  std::unique_ptr<CollectivePlan> gather_;
  Symm<float> own_;  // a whole shard, also if the user's is shorter
  Symm<float> all_;
};

}  // namespace tandem::ops
