/// AllGather + GEMM: the shards of A travel while the GEMM works, own rows first, each tile waiting for its own rows
/// alone (Triton-distributed, arXiv 2504.19442). docs/all_gather_gemm.md goes through it.

#include <algorithm>

#include "ops/gather_transport.h"
#include "ops/steps.h"
#include "tandem/gemm_order.h"

namespace tandem::ops {

namespace {

class AllGatherGemm final : public OperatorPlan {
 public:
  AllGatherGemm(World& world, const Settings& settings)
      : settings_(settings), team_(world.team()), sms_(world.machine().gpu.sm_count), transport_(world, settings) {}

  void run(Stream& main, const void* a, const void* b, void* c) override {
    const auto* const own = static_cast<const std::byte*>(a);
    const Form form = settings_.options.form;
    if (settings_.options.m == 0) return;
    if (form == Form::kComputeOnly) return main.gemm(whole(own, b, c), team_);
    transport_.begin(main, own);  // producers first: nothing promises that streams run side by side
    if (form == Form::kOverlapped) main.gemm(gated(own, b, c), team_);
    if (form == Form::kDecomposed) shard_by_shard(main, own, b, c);
    if (form == Form::kSequential || form == Form::kCommunicationOnly) transport_.await(main, 0, team_.size);
    if (form == Form::kSequential) main.gemm(whole(own, b, c), team_);
    transport_.end(main);
  }

 private:
  /// The gathered problem on all SMs, waiting for nobody; the own rows are read where the user has them.
  Gemm whole(const std::byte* own, const void* b, void* c) const {
    const OperatorOptions& o = settings_.options;
    Gemm gemm;
    gemm.m = o.m;
    gemm.n = split(o.n, team_.size)[team_.me].size();
    gemm.k = o.k;
    gemm.type = gemm.out_type = o.type;
    gemm.tile_m = o.tile_m;
    gemm.tile_n = o.tile_n;
    gemm.panel_group = o.panel_group;
    gemm.a = transport_.gathered();
    gemm.own_a = own;
    gemm.b = b;
    gemm.c = c;
    gemm.rows = transport_.rows();
    gemm.rows.splits = 1;
    gemm.me = team_.me;
    gemm.node_size = team_.node_size;
    gemm.order = TileOrder::kOwnFirst;
    return gemm;
  }

  Gemm gated(const std::byte* own, const void* b, void* c) const {
    Gemm gemm = whole(own, b, c);
    gemm.rows = transport_.rows();
    gemm.order = settings_.order;
    gemm.gate = transport_.gate();
    const int steps = transport_.has_steps_beside_gemm() ? kStepSms : 0;
    gemm.sms = std::max(1, sms_ - std::max(settings_.communication_sms, steps));
    return gemm;
  }

  /// One GEMM a shard, each when its rows are there.
  void shard_by_shard(Stream& main, const std::byte* own, const void* b, void* c) {
    const Gemm all = gated(own, b, c);
    const TileSequence sequence(all);
    for (int step = 0; step < team_.size; ++step) {
      const int owner = sequence.owner(step);
      const Range rows = all.rows.shard(owner);
      Gemm chunk = all;
      chunk.m = rows.size();
      chunk.a = owner == team_.me ? own : transport_.gathered() + rows.begin * all.k * size_of(all.type);
      chunk.own_a = nullptr;
      chunk.c = static_cast<std::byte*>(c) + rows.begin * all.n * size_of(all.out_type);
      chunk.order = TileOrder::kRowMajor;
      chunk.gate = {};
      if (owner != team_.me) transport_.await(main, owner, 1);
      main.gemm(chunk, team_);
    }
  }

  Settings settings_;
  Team team_;
  int sms_;
  GatherTransport transport_;
};

}  // namespace

std::unique_ptr<OperatorPlan> make_all_gather_gemm(World& world, const Settings& settings) {
  return std::make_unique<AllGatherGemm>(world, settings);
}

}  // namespace tandem::ops
