/// GEMM + AllReduce.
///
/// Overlapped, it is two-shot: the chain of GEMM + ReduceScatter (chain.h) completes a PE's own rows last, and piece by
/// piece, as they are complete, copy engines push them to the peers. Sequential, a whole GEMM leaves its partial sums
/// in symmetric memory and the collective that suits the size adds them.

#include "ops/chain.h"
#include "ops/pieces.h"
#include "ops/steps.h"
#include "tandem/collectives.h"

namespace tandem::ops {

namespace {

class GemmAllReduceOverlapped final : public OperatorPlan {
 public:
  GemmAllReduceOverlapped(World& world, const Settings& settings)
      : team_(world.team()),
        chain_(world, settings, "gemm_all_reduce", true),
        row_bytes_(settings.options.n * size_of(settings.options.type)),
        pushes_(world.make_stream("pushes")),
        takes_(world.make_stream("takes")) {
    SymmetricHeap& heap = world.heap();
    const RowPartition& rows = chain_.rows();
    sums_ = heap.allocate<std::byte>(rows.shards * rows.shard_rows() * row_bytes_, "gemm_all_reduce sums");
    computed_ = heap.signals(rows.slots(), "gemm_all_reduce computed");
    complete_ = heap.signals(rows.slots(), "gemm_all_reduce complete");
    taken_ = heap.signals(team_.size, "gemm_all_reduce taken");
  }

  void run(Stream& main, const void* a, const void* b, void* c) override {
    if (chain_.rows().rows == 0) return;
    auto* const out = static_cast<std::byte*>(c);
    std::byte* const own = out + chain_.rows().shard(team_.me).begin * row_bytes_;
    chain_.begin(main);
    const Event begun = main.record();
    Gemm gemm = chain_.gemm(a, b, own);
    gemm.notify = {computed_, true};
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

 private:
  /// The own rows go to the peers as they are complete.
  void push(const Gemm& gemm, const std::byte* own) {
    const RowPartition& rows = chain_.rows();
    pushes_.launch<AwaitReleased>(kOneWarp, {taken_, chain_.epoch(), false});
    for (int part = 0; part < rows.splits; ++part) {
      const Range piece = bytes_of(rows.part(team_.me, part), row_bytes_);
      const int slot = rows.slot(team_.me, part);
      pushes_.launch<AwaitWord>(kOneWarp, {computed_ + slot, chain_.epoch(), gemm.tiles_of_piece(team_.me, part)});
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
  Signals computed_;      // [piece]: own rows, tiles counted over all calls
  Signals complete_;      // [piece]: the peers' rows are in sums_
  Signals taken_;         // [PE]: the last call whose rows it has taken
  Stream pushes_;
  Stream takes_;
};

// Between two PEs one shot moves as many bytes as two, and its result may be anywhere: a copy less. Below, the default
// has no second shot either.
constexpr Size kLeastOneShot = Size{512} << 10;
constexpr Size kMostOneShot = Size{4} << 20;
constexpr int kOneShotBlocks = 64;

class GemmAllReduceSequential final : public OperatorPlan {
 public:
  GemmAllReduceSequential(World& world, const Settings& settings)
      : options_(settings.options), team_(world.team()), count_(options_.m * options_.n) {
    const Size bytes = count_ * size_of(options_.type);
    partials_ = world.heap().allocate<std::byte>(bytes, "gemm_all_reduce partials");
    CollectiveOptions collective;
    collective.type = options_.type;
    collective.max_count = count_;
    if (team_.one_node() && team_.size == 2 && bytes > kLeastOneShot && bytes <= kMostOneShot) {
      collective.algorithm = "one_shot";
      collective.blocks = kOneShotBlocks;
    }
    all_reduce_ = make_collective(world, Collective::kAllReduce, collective);
    const std::string& algorithm = all_reduce_->algorithm();
    straight_ = algorithm == "one_shot" || algorithm.ends_with("_ll");
    if (!straight_) sums_ = world.heap().allocate<std::byte>(bytes, "gemm_all_reduce sums");
  }

  void run(Stream& main, const void* a, const void* b, void* c) override {
    if (count_ == 0) return;
    if (options_.form != Form::kCommunicationOnly) main.gemm(gemm(a, b), team_);
    if (options_.form == Form::kComputeOnly) return;
    const Symm<std::byte> out = straight_ ? Symm<std::byte>(static_cast<std::byte*>(c), 0, team_.me) : sums_;
    all_reduce_->run(main, partials_, out, count_);
    if (!straight_) main.copy_async(c, sums_.local(), count_ * size_of(options_.type));
  }

 private:
  Gemm gemm(const void* a, const void* b) const {
    Gemm gemm;
    gemm.m = options_.m;
    gemm.n = options_.n;
    gemm.k = split(options_.k, team_.size)[team_.me].size();
    gemm.type = gemm.out_type = options_.type;
    gemm.tile_m = options_.tile_m;
    gemm.tile_n = options_.tile_n;
    gemm.panel_group = options_.panel_group;
    gemm.a = a;
    gemm.b = b;
    gemm.c = partials_.local();
    gemm.rows = {options_.m, 1, 1, 1};
    return gemm;
  }

  OperatorOptions options_;
  Team team_;
  Size count_;
  bool straight_ = false;  // the collective writes no result but the own one: it goes straight to the user's
  Symm<std::byte> partials_;
  Symm<std::byte> sums_;
  std::unique_ptr<CollectivePlan> all_reduce_;
};

}  // namespace

std::unique_ptr<OperatorPlan> make_gemm_all_reduce(World& world, const Settings& settings) {
  if (settings.options.form == Form::kOverlapped) return std::make_unique<GemmAllReduceOverlapped>(world, settings);
  return std::make_unique<GemmAllReduceSequential>(world, settings);
}

}  // namespace tandem::ops
