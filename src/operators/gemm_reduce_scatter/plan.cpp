/// GEMM + ReduceScatter: the GEMM computes the rows of other PEs first, so that its tiles travel meanwhile, and own
/// rows last. Sums of arriving tiles are computed beside it (Triton-distributed, arXiv 2504.19442).

#include <algorithm>

#include "operators/gemm_reduce_scatter/scatter_transport.h"
#include "operators/plan/gemm_descriptor.h"
#include "operators/steps/steps.h"

namespace tandem::ops {

namespace {

class GemmReduceScatter final : public OperatorPlan {
 public:
  GemmReduceScatter(World& world, const Settings& settings)
      : OperatorPlan(settings.options),
        settings_(settings),
        team_(world.team()),
        sms_(world.machine().gpu.sm_count),
        transport_(world, settings) {}

 private:
  void enqueue(Stream& main, const OperatorCall& call) override {
    const Form form = settings_.options.form;
    const Gemm gemm = whole(call);
    if (form == Form::kComputeOnly) return main.gemm(gemm, team_);
    transport_.begin(main, call.m);
    if (form == Form::kOverlapped) overlap(main, gemm);
    if (form == Form::kSequential) main.gemm(gemm, team_);
    if (form == Form::kDecomposed)
      shard_by_shard(main, gemm);
    else if (form != Form::kOverlapped)
      for (int step = 1; step <= team_.size; ++step) transport_.publish(main, (team_.me + step) % team_.size);
    transport_.finish(main, call.c[0], gemm);
  }

  /// Computes this PE's partial sums of all rows, on all SMs.
  Gemm whole(const OperatorCall& call) const {
    const OperatorOptions& o = settings_.options;
    Gemm gemm = partial_gemm(settings_, team_, call);
    gemm.destination = GemmLocal{transport_.partials()};
    // Shards cut tiles, so the GEMM follows them only if it sends tile by tile, or shard by shard.
    const bool by_shards = o.form == Form::kOverlapped || o.form == Form::kDecomposed;
    gemm.order = by_shards ? settings_.order : TileOrder::kRowMajor;
    return gemm;
  }

  void overlap(Stream& main, Gemm gemm) {
    const int steps = settings_.options.copy_by == CopyBy::kCopyEngine ? kStepSms : 0;
    gemm.sms = std::max(1, sms_ - settings_.options.communication_sms - steps);
    gemm.destination = transport_.destination();
    main.gemm(gemm, team_);
    transport_.follow(gemm);
  }

  /// Enqueues one GEMM for each shard. Each is sent when it is done.
  void shard_by_shard(Stream& main, const Gemm& all) {
    const TileSequence sequence(all);
    for (int step = 0; step < team_.size; ++step) {
      const int owner = sequence.owner(step);
      main.gemm(rows_of(all, all.rows.shard(owner)), team_);
      transport_.publish(main, owner);
    }
  }

  Settings settings_;
  Team team_;
  int sms_;
  ScatterTransport transport_;
};

}  // namespace

std::unique_ptr<OperatorPlan> make_gemm_reduce_scatter(World& world, const Settings& settings) {
  return std::make_unique<GemmReduceScatter>(world, settings);
}

}  // namespace tandem::ops
