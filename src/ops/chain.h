#pragma once
/// The chain of partial sums through the PEs of a node (GemmChain), its memory, and the two ends of a call.

#include <string>

#include "ops/chain_steps.h"
#include "ops/operator.h"
#include "ops/steps.h"

namespace tandem::ops {

class Chain {
 public:
  Chain(World& world, const Settings& settings, const std::string& name)
      : options_(settings.options), team_(world.team()), rows_(settings.rows(team_, settings.options.m)) {
    SymmetricHeap& heap = world.heap();
    const Size block_bytes = rows_.shard_rows() * options_.n * size_of(options_.type);
    chain_.staging = heap.allocate<std::byte>(rows_.shards * block_bytes, name + " chain");
    chain_.arrived = heap.signals(rows_.slots(), name + " arrived");
    steps_.released = heap.signals(1, name + " released");
    steps_.epochs = heap.epochs(1, name + " epoch");
    chain_.epoch = steps_.epochs.words;
    const int sm_count = world.machine().gpu.sm_count;
    sms_ = settings.communication_sms > 0 ? sm_count - settings.communication_sms : 0;
  }

  /// Counts the call, and waits until the previous PE's staging may be written.
  void begin(Stream& main) const { main.launch<ChainBegin>(kOneWarp, steps_); }
  /// This PE's staging may be written again.
  void end(Stream& main) const { main.launch<ChainEnd>(kOneWarp, steps_); }

  /// The GEMM between them; `own_rows`: where the complete sums of the own rows go.
  Gemm gemm(const void* a, const void* b, void* own_rows) const {
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
    gemm.c = own_rows;
    gemm.rows = rows_;
    gemm.me = team_.me;
    gemm.node_size = team_.node_size;
    gemm.order = TileOrder::kPeersFirst;
    gemm.chain = chain_;
    return gemm;
  }

  const RowPartition& rows() const { return rows_; }
  const Epoch* epoch() const { return chain_.epoch; }

 private:
  OperatorOptions options_;
  Team team_;
  RowPartition rows_;
  int sms_ = 0;
  GemmChain chain_;
  ChainArgs steps_;
};

}  // namespace tandem::ops
