/// GEMM + AllReduce as a ring. The ring of GEMM + ReduceScatter (ring_reduce_scatter.h) completes a PE's own rows last.
/// It stores them twice: to the user's result and to symmetric memory. The peers' copy engines fetch them from there
/// directly into their results, chunk by chunk. (If they were pushed to symmetric memory, the peer would need a copy by
/// SMs, of which the GEMM leaves it few.) Alternatively SMs fetch them (fetch_rows.h): some beside the GEMM, and more
/// after it.

#include <algorithm>
#include <optional>

#include "operators/gemm_all_reduce/fetch_rows.h"
#include "operators/plan/chunk_order.h"
#include "operators/ring/ring_reduce_scatter.h"
#include "operators/steps/steps.h"

namespace tandem::ops {

namespace {

/// Blocks that fill the link after the GEMM.
constexpr int kFetchBlocks = 64;

class GemmAllReduceRing final : public OperatorPlan {
 public:
  GemmAllReduceRing(World& world, const Settings& settings)
      : OperatorPlan(settings.options),
        team_(world.team()),
        ring_(world, settings, "gemm_all_reduce", true),
        row_bytes_(settings.result_row_bytes()),
        by_sms_(settings.options.copy_by == CopyBy::kSm || settings.options.communication_sms > 0),
        beside_{settings.options.communication_sms, kFetchThreads},
        after_{std::min(kFetchBlocks, world.machine().gpu.sm_count), kFetchThreads},
        offers_(world.make_stream("offers")) {
    if (!by_sms_ || beside_.blocks > 0) takes_.emplace(world.make_stream("takes"));
    SymmetricHeap& heap = world.heap();
    const RowPartition& rows = ring_.rows();
    own_ = settings.transport_memory(world, rows.shard_rows() * row_bytes_, "gemm_all_reduce own rows");
    computed_ = heap.signals(ring_.tile_words(), "gemm_all_reduce own tiles");
    complete_ = heap.signals(rows.slots(), "gemm_all_reduce complete");
    taken_ = heap.signals(team_.size, "gemm_all_reduce taken");
    if (by_sms_) chunks_ = heap.allocate_local<Epoch>(1, "gemm_all_reduce chunks taken");
  }

 private:
  /// With two PEs, the other one has started this call when own rows can be complete, because they include its sums. So
  /// it has all rows of the last call.
  bool has_others_than_next() const { return team_.size > 2; }

  void enqueue(Stream& main, const OperatorCall& call) override {
    ring_.begin(main, call.m);
    if (by_sms_)
      main.launch<BeginFetch>(kOneWarp, {taken_, ring_.epoch(), chunks_});
    else if (has_others_than_next())
      main.launch<AwaitReleased>(kOneWarp, {taken_, ring_.epoch()});
    auto* const out = static_cast<std::byte*>(call.c[0]);
    const Event begun = main.record();
    const Gemm gemm = ring_.gemm(call, {.c = out + ring_.rows().shard(team_.me).begin * row_bytes_,
                                        .notify = ring_.of_call(computed_),
                                        .own_copy = own_.local()});
    main.gemm(gemm, team_);
    ring_.follow(gemm);
    offers_.wait(begun);
    if (by_sms_) return fetch_by_sms(main, begun, gemm, out);
    takes_->wait(begun);
    notify_peers(gemm);
    take(out);
    main.wait_for(offers_);
    main.wait_for(*takes_);
    if (has_others_than_next()) main.launch<Release>(kOneWarp, {taken_, ring_.epoch()});
    ring_.end(main);
  }

  void fetch_by_sms(Stream& main, const Event& begun, const Gemm& gemm, std::byte* out) {
    const RowPartition& rows = ring_.rows();
    offers_.launch<NotifyRows>(kOneWarp, {ring_.of_call(computed_), ring_.epoch_of_tiles(), complete_, ring_.epoch(),
                                          rows, gemm.tile_m, ceil_div(gemm.n, gemm.tile_n)});
    const FetchRows::Args fetch{own_, out, complete_, ring_.epoch(), chunks_, rows, row_bytes_};
    const bool beside = takes_ && await_first_rows(begun);
    if (beside) takes_->launch<FetchRows>(beside_, fetch);
    // A grid on all SMs would leave no place for the steps of the ring's copies, for which it waits.
    ring_.end(main);
    main.wait_for(offers_);
    main.launch<FetchRows>(after_, fetch);
    if (beside) main.wait_for(*takes_);
    main.launch<Release>(kOneWarp, {taken_, ring_.epoch()});
  }

  /// Fetching blocks keep their SMs until the GEMM is done, so the GEMM must have its SMs before they start. When rows
  /// of a peer are complete the GEMM runs, because it computed a part of them. It then has all its SMs, since only
  /// steps of one warp ran beside it. Returns false if no peer has rows.
  bool await_first_rows(const Event& begun) {
    const RowPartition& rows = ring_.rows();
    for (int step = 1; step < team_.size; ++step) {
      const int owner = (team_.me + step) % team_.size;
      if (rows.part(owner, 0).empty()) continue;
      takes_->wait(begun);
      takes_->launch<AwaitWord>(kOneWarp, {complete_ + rows.slot(owner, 0), ring_.epoch(), 1});
      return true;
    }
    return false;
  }

  /// Notifies the peers of the own rows as they are completed.
  void notify_peers(const Gemm& gemm) {
    const RowPartition& rows = ring_.rows();
    for (int part = 0; part < rows.splits; ++part) {
      if (rows.part(team_.me, part).empty()) continue;
      const int slot = rows.slot(team_.me, part);
      offers_.launch<AwaitWord>(
          kOneWarp, {ring_.of_call(computed_) + slot, ring_.epoch_of_tiles(), gemm.tiles_of_chunk(team_.me, part)});
      for (int step = 1; step < team_.size; ++step)
        offers_.write_signal_from(complete_.on((team_.me + step) % team_.size) + slot, ring_.epoch());
    }
  }

  void take(std::byte* out) {
    const RowPartition& rows = ring_.rows();
    for (int part = 0; part < rows.splits; ++part)
      for (int step = 1; step < team_.size; ++step) {
        const int owner = (team_.me + team_.size - step) % team_.size;
        const Range piece = bytes_of(rows.part(owner, part), row_bytes_);
        if (piece.empty()) continue;
        takes_->launch<AwaitWord>(kOneWarp, {complete_ + rows.slot(owner, part), ring_.epoch(), 1});
        takes_->copy_async(out + piece.begin, own_.on(owner) + (piece.begin - rows.shard(owner).begin * row_bytes_),
                           piece.size());
      }
  }

  Team team_;
  RingReduceScatter ring_;
  Size row_bytes_;
  bool by_sms_;          // SMs fetch
  Grid beside_, after_;  // grids during and after the GEMM
  Symm<std::byte> own_;  // shard_rows x n: own rows, for the peers
  Signals computed_;     // [class of rows][chunk]: own rows, tiles counted over all calls of the class
  Signals complete_;     // [chunk]: the peers' rows may be fetched
  Signals taken_;        // [PE]: the last call whose rows it has fetched
  Epoch* chunks_ = nullptr;
  Stream offers_;
  std::optional<Stream> takes_;  // beside the GEMM
};

}  // namespace

std::unique_ptr<OperatorPlan> make_gemm_all_reduce_ring(World& world, const Settings& settings) {
  return std::make_unique<GemmAllReduceRing>(world, settings);
}

}  // namespace tandem::ops
