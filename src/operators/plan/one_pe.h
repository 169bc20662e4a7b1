#pragma once
/// Operators of a world with one PE.

#include "operators/plan/operator.h"

namespace tandem::ops {

/// No row travels. One GEMM for each B, with its whole epilogue, writes the result on all SMs.
class OnePe final : public OperatorPlan {
 public:
  OnePe(World& world, const Settings& settings)
      : OperatorPlan(settings.options), settings_(settings), team_(world.team()) {}

 private:
  void enqueue(Stream& main, const OperatorCall& call) override;

  Settings settings_;
  Team team_;
};

}  // namespace tandem::ops
