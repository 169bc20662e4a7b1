#include "collectives/plan/plan.h"
#include "collectives/reduce/direct.h"
#include "collectives/reduce/tree.h"

namespace tandem::kernels {

namespace {

constexpr Collective kThis = Collective::kReduce;

}  // namespace

std::span<const Algorithm> reduce_algorithms() {
  using enum PeerAccess;
  static const Algorithm algorithms[] = {
      {{kThis, "direct", "the root reads the inputs of all PEs and sums them", true, false, kInput},
       make_plan<kThis, ReduceDirect>},
      {{kThis, "tree", "sums go up a binary tree, in chunks", false, false, kNeither}, make_plan<kThis, ReduceTree>},
  };
  return algorithms;
}

}  // namespace tandem::kernels
