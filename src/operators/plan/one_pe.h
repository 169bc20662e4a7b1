#pragma once
/// Operators of a world with one PE.

#include <optional>

#include "operators/all_gather_gemm/shard_norm.h"
#include "operators/plan/operator.h"

namespace tandem::ops {

/// No row travels. One GEMM for each B, with its whole epilogue, writes the result on all SMs. all_gather_gemm may norm
/// the rows of A before.
class OnePe final : public OperatorPlan {
 public:
  OnePe(World& world, const Settings& settings);

 private:
  void enqueue(Stream& main, const OperatorCall& call) override;

  Settings settings_;
  Team team_;
  std::optional<ShardNorm> norm_;
  Symm<std::byte> normed_;
};

}  // namespace tandem::ops
