#pragma once
/// The gather of the scales of A's rows or blocks. They are 4 bytes for each row of K elements or for each 128
/// elements, so they go first and as a whole.

#include "operators/plan/operator.h"
#include "tandem/collectives.h"

namespace tandem::ops {

class GatheredScales {
 public:
  /// Gathers nothing unless A has scales of rows or blocks.
  GatheredScales(World& world, const Settings& settings);

  /// Enqueues the gather of the scales of `m` rows, of which `given` are this PE's; null: they are in `own()`.
  void gather(Stream& main, const float* given, Size m);
  /// Returns the scales of all rows; null if none were gathered.
  const float* all() const { return gather_ ? all_.local() : nullptr; }
  /// Returns the place of this PE's scales; none if none are gathered.
  const Symm<float>& own() const { return own_; }

 private:
  Team team_;
  Size of_row_ = 0;  // scales of a row
  std::unique_ptr<CollectivePlan> gather_;
  Symm<float> own_;  // a whole shard, also if the user's is shorter
  Symm<float> all_;
};

}  // namespace tandem::ops
