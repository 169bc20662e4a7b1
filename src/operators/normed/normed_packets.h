#pragma once
/// gemm_all_reduce of few rows with a norm: a whole GEMM, then all_reduce_norm with packets.

#include "operators/plan/operator.h"
#include "tandem/layer/all_reduce_norm.h"

namespace tandem::ops {

class NormedPackets {
 public:
  /// For runs of up to `rows` rows.
  NormedPackets(World& world, const Settings& settings, Size rows);
  void run(Stream& main, const OperatorCall& call) const;

 private:
  World world_;
  Settings settings_;
  Symm<std::byte> partials_;
  std::unique_ptr<AllReduceNormPlan> norm_;
};

/// Returns the rows up to which NormedPackets suit the operator; 0 for none.
Size rows_of_normed_packets(Operator op, const Settings& settings, const World& world);

}  // namespace tandem::ops
