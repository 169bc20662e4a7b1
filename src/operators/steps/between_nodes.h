#pragma once
/// GEMM + AllReduce between nodes: the product in chunks of rows. The library's all-reduce sums each chunk while the
/// next is computed.

#include <vector>

#include "operators/plan/operator.h"
#include "tandem/collectives.h"

namespace tandem::ops {

class BetweenNodes {
 public:
  BetweenNodes(World& world, const Settings& settings);
  /// Computes c = the sum over all PEs of gemm's product.
  void run(Stream& main, const Gemm& gemm, void* c);

 private:
  Team team_;
  Form form_;
  int chunks_;
  int gemm_sms_;
  Size row_bytes_;
  Symm<std::byte> partials_, sums_;  // m x n
  std::unique_ptr<CollectivePlan> all_reduce_;
  Stream reductions_;
};

}  // namespace tandem::ops
