/// GEMM + AllReduce of activated sums between nodes. The collective of BetweenNodes rounds its sums, so it cannot apply
/// an activation. Instead GEMM + ReduceScatter lets the owners activate their sums before they round them, and an
/// all-gather follows.

#include "operators/plan/operator.h"
#include "tandem/collectives.h"

namespace tandem::ops {

namespace {

class GemmAllReduceByShards final : public OperatorPlan {
 public:
  GemmAllReduceByShards(World& world, const Settings& settings)
      : OperatorPlan(settings.options), settings_(settings), team_(world.team()) {
    Settings scatter = settings;
    scatter.options.reduction = Reduction::kOwner;
    scatter.order = TileOrder::kOtherNodesFirst;
    scatter_ = make_gemm_reduce_scatter(world, scatter);
    const Size shard = settings.rows(team_, settings.options.m).shard_rows() * settings.options.n;
    const Size bytes = shard * size_of(settings.options.result_type());
    own_ = world.heap().allocate<std::byte>(bytes, "gemm_all_reduce own sums");
    all_ = world.heap().allocate<std::byte>(team_.size * bytes, "gemm_all_reduce sums");
    CollectiveOptions gather;
    gather.type = settings.options.result_type();
    gather.max_count = shard;
    gather_ = make_collective(world, Collective::kAllGather, gather);
  }

  std::string strategy(Size) const override { return "by_shards"; }

 private:
  void enqueue(Stream& main, const OperatorCall& call) override {
    OperatorCall own = call;
    void* const sums = own_.local();
    own.c = {&sums, 1};
    scatter_->run(main, own);
    gather_->run(main, own_, all_, settings_.rows(team_, call.m).shard_rows() * settings_.options.n);
    main.copy_async(call.c[0], all_.local(), call.m * settings_.result_row_bytes());
  }

  Settings settings_;
  Team team_;
  Symm<std::byte> own_;  // one shard
  Symm<std::byte> all_;
  std::unique_ptr<OperatorPlan> scatter_;
  std::unique_ptr<CollectivePlan> gather_;
};

}  // namespace

std::unique_ptr<OperatorPlan> make_gemm_all_reduce_by_shards(World& world, const Settings& settings) {
  return std::make_unique<GemmAllReduceByShards>(world, settings);
}

}  // namespace tandem::ops
