/// GEMM + ReduceScatter as a ring: all PEs start with the rows of the next PE and end with their own. Each tile's sum
/// goes to the previous PE, which computes the same rows one shard later and adds the sum in its epilogue. The owner
/// comes last and stores the complete sum. No pass over memory follows the GEMM.

#include "operators/ring/ring_reduce_scatter.h"

namespace tandem::ops {

namespace {

class GemmReduceScatterRing final : public OperatorPlan {
 public:
  GemmReduceScatterRing(World& world, const Settings& settings)
      : OperatorPlan(settings.options), team_(world.team()), ring_(world, settings, "gemm_reduce_scatter", false) {}

 private:
  void enqueue(Stream& main, const OperatorCall& call) override {
    ring_.begin(main, call.m);
    const Gemm gemm = ring_.gemm(call, {.c = call.c[0]});
    main.gemm(gemm, team_);
    ring_.follow(gemm);
    ring_.end(main);
  }

  Team team_;
  RingReduceScatter ring_;
};

}  // namespace

std::unique_ptr<OperatorPlan> make_gemm_reduce_scatter_ring(World& world, const Settings& settings) {
  return std::make_unique<GemmReduceScatterRing>(world, settings);
}

}  // namespace tandem::ops
