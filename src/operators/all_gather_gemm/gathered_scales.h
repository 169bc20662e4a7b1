#pragma once
/// The scales of A's rows, on their way to every PE beside the rows: 4 bytes for each of K, so they go first and whole.

#include "operators/plan/operator.h"
#include "tandem/collectives.h"

namespace tandem::ops {

class GatheredScales {
 public:
  /// Nothing to gather where A has no scale for each row.
  GatheredScales(World& world, const Settings& settings);

  /// Enqueues the gather of `m` scales, of which `own` are this PE's.
  void gather(Stream& main, const float* own, Size m);
  /// Those of all rows; null: none were to gather.
  const float* all() const { return gather_ ? all_.local() : nullptr; }

 private:
  Team team_;
  std::unique_ptr<CollectivePlan> gather_;
  Symm<float> own_;  // a whole shard, also where the user's is shorter
  Symm<float> all_;
};

}  // namespace tandem::ops
