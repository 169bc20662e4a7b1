/// GEMM + ReduceScatter as a ring: all PEs start with the rows of the next PE and end with their own. Each tile's sum
/// goes to the previous PE, which computes the same rows one shard later and adds the sum in its epilogue. The owner
/// comes last and stores the complete sum. No pass over memory follows the GEMM.

#include "operators/ring/chain.h"

namespace tandem::ops {

namespace {

class GemmReduceScatterChain final : public OperatorPlan {
 public:
  GemmReduceScatterChain(World& world, const Settings& settings)
      : OperatorPlan(settings.options), team_(world.team()), chain_(world, settings, "gemm_reduce_scatter", false) {}

 private:
  void enqueue(Stream& main, const OperatorCall& call) override {
    chain_.begin(main, call.m);
    const Gemm gemm = chain_.gemm(call, call.c[0]);
    main.gemm(gemm, team_);
    chain_.follow(gemm);
    chain_.end(main);
  }

  Team team_;
  Chain chain_;
};

}  // namespace

std::unique_ptr<OperatorPlan> make_gemm_reduce_scatter_chain(World& world, const Settings& settings) {
  return std::make_unique<GemmReduceScatterChain>(world, settings);
}

}  // namespace tandem::ops
