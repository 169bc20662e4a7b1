/// GEMM + ReduceScatter as a chain: all PEs begin with the rows of the next PE and end with their own. Each tile's sum
/// goes to the previous PE, which works on the same rows one shard later and adds it in its epilogue; the owner comes
/// last and stores the complete sum. No pass over memory follows the GEMM.

#include <algorithm>

#include "ops/chain_steps.h"
#include "ops/operator.h"
#include "ops/steps.h"

namespace tandem::ops {

namespace {

class GemmReduceScatterChain final : public OperatorPlan {
 public:
  GemmReduceScatterChain(World& world, const Settings& settings)
      : options_(settings.options), team_(world.team()), rows_(settings.rows(team_)) {
    SymmetricHeap& heap = world.heap();
    const Size block_bytes = rows_.shard_rows() * options_.n * size_of(options_.type);
    chain_.staging = heap.allocate<std::byte>(rows_.shards * block_bytes, "gemm_reduce_scatter chain");
    chain_.arrived = heap.signals(rows_.slots(), "gemm_reduce_scatter arrived");
    steps_.released = heap.signals(1, "gemm_reduce_scatter released");
    steps_.epochs = heap.epochs(1, "gemm_reduce_scatter epoch");
    chain_.epoch = steps_.epochs.words;
    sms_ = world.machine().gpu.sm_count - std::max(0, settings.communication_sms);
  }

  void run(Stream& main, const void* a, const void* b, void* c) override {
    if (options_.m == 0) return;
    main.launch<ChainBegin>(kOneWarp, steps_);
    Gemm gemm;
    gemm.m = options_.m;
    gemm.n = options_.n;
    gemm.k = split(options_.k, team_.size)[team_.me].size();
    gemm.type = gemm.out_type = options_.type;
    gemm.tile_m = options_.tile_m;
    gemm.tile_n = options_.tile_n;
    gemm.panel_group = options_.panel_group;
    gemm.sms = sms_;
    gemm.a = a;
    gemm.b = b;
    gemm.c = c;
    gemm.rows = rows_;
    gemm.me = team_.me;
    gemm.node_size = team_.node_size;
    gemm.order = TileOrder::kPeersFirst;
    gemm.chain = chain_;
    main.gemm(gemm, team_);
    main.launch<ChainEnd>(kOneWarp, steps_);
  }

 private:
  OperatorOptions options_;
  Team team_;
  RowPartition rows_;
  int sms_ = 0;
  GemmChain chain_;
  ChainArgs steps_;
};

}  // namespace

std::unique_ptr<OperatorPlan> make_gemm_reduce_scatter_chain(World& world, const Settings& settings) {
  return std::make_unique<GemmReduceScatterChain>(world, settings);
}

}  // namespace tandem::ops
