/// GEMM + AllReduce as a chain: that of GEMM + ReduceScatter (chain.h) completes a PE's own rows last, and piece by
/// piece, as they are complete, copy engines push them to the peers.

#include "ops/chain.h"
#include "ops/pieces.h"
#include "ops/steps.h"

namespace tandem::ops {

namespace {

class GemmAllReduceChain final : public OperatorPlan {
 public:
  GemmAllReduceChain(World& world, const Settings& settings)
      : OperatorPlan(settings.options),
        team_(world.team()),
        chain_(world, settings, "gemm_all_reduce", true),
        row_bytes_(settings.result_row_bytes()),
        pushes_(world.make_stream("pushes")),
        takes_(world.make_stream("takes")) {
    SymmetricHeap& heap = world.heap();
    const RowPartition& rows = chain_.rows();
    sums_ = heap.allocate<std::byte>(rows.shards * rows.shard_rows() * row_bytes_, "gemm_all_reduce sums");
    computed_ = heap.signals(chain_.tile_words(), "gemm_all_reduce computed");
    complete_ = heap.signals(rows.slots(), "gemm_all_reduce complete");
    taken_ = heap.signals(team_.size, "gemm_all_reduce taken");
  }

 private:
  void enqueue(Stream& main, const OperatorCall& call) override {
    chain_.begin(main, call.m);
    auto* const out = static_cast<std::byte*>(call.c[0]);
    std::byte* const own = out + chain_.rows().shard(team_.me).begin * row_bytes_;
    const Event begun = main.record();
    Gemm gemm = chain_.gemm(call, own);
    gemm.notify = {chain_.of_call(computed_), true};
    main.gemm(gemm, team_);
    chain_.follow(gemm);
    pushes_.wait(begun);
    push(gemm, own);
    takes_.wait(begun);
    take(out);
    main.wait_for(pushes_);
    main.wait_for(takes_);
    main.launch<Release>(kOneWarp, {taken_, chain_.epoch(), false});
    chain_.end(main);
  }

  /// The own rows go to the peers as they are complete.
  void push(const Gemm& gemm, const std::byte* own) {
    const RowPartition& rows = chain_.rows();
    pushes_.launch<AwaitReleased>(kOneWarp, {taken_, chain_.epoch(), false});
    for (int part = 0; part < rows.splits; ++part) {
      const Range piece = bytes_of(rows.part(team_.me, part), row_bytes_);
      const int slot = rows.slot(team_.me, part);
      pushes_.launch<AwaitWord>(
          kOneWarp, {chain_.of_call(computed_) + slot, chain_.epoch_of_tiles(), gemm.tiles_of_piece(team_.me, part)});
      for (int step = 1; step < team_.size; ++step) {
        const int peer = (team_.me + step) % team_.size;
        pushes_.copy_async(sums_.on(peer) + piece.begin, own + (piece.begin - rows.shard(team_.me).begin * row_bytes_),
                           piece.size());
        pushes_.write_signal_from(complete_.on(peer) + slot, chain_.epoch());
      }
    }
  }

  /// The peers' rows go from where they arrive to the user's result, which no peer touches.
  void take(std::byte* out) {
    const RowPartition& rows = chain_.rows();
    for (int part = 0; part < rows.splits; ++part)
      for (int step = 1; step < team_.size; ++step) {
        const int owner = (team_.me + team_.size - step) % team_.size;
        const Range piece = bytes_of(rows.part(owner, part), row_bytes_);
        takes_.launch<AwaitWord>(kOneWarp, {complete_ + rows.slot(owner, part), chain_.epoch(), 1});
        takes_.copy_async(out + piece.begin, sums_.local() + piece.begin, piece.size());
      }
  }

  Team team_;
  Chain chain_;
  Size row_bytes_;
  Symm<std::byte> sums_;  // m x n: the peers' rows
  Signals computed_;      // [class of rows][piece]: own rows, tiles counted over all calls of the class
  Signals complete_;      // [piece]: the peers' rows are in sums_
  Signals taken_;         // [PE]: the last call whose rows it has taken
  Stream pushes_;
  Stream takes_;
};

}  // namespace

std::unique_ptr<OperatorPlan> make_gemm_all_reduce_chain(World& world, const Settings& settings) {
  return std::make_unique<GemmAllReduceChain>(world, settings);
}

}  // namespace tandem::ops
