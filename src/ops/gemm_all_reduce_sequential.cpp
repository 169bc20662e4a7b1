/// GEMM + AllReduce, one after the other: a whole GEMM leaves its partial sums in symmetric memory, and the collective
/// that suits the size adds them.

#include "ops/operator.h"
#include "tandem/collectives.h"

namespace tandem::ops {

namespace {

// Between two PEs one shot moves as many bytes as two, and its result may be anywhere: a copy less. Below, the default
// has no second shot either.
constexpr Size kLeastOneShot = Size{512} << 10;
constexpr Size kMostOneShot = Size{4} << 20;
constexpr int kOneShotBlocks = 64;

class GemmAllReduceSequential final : public OperatorPlan {
 public:
  GemmAllReduceSequential(World& world, const Settings& settings)
      : OperatorPlan(settings.options), options_(settings.options), team_(world.team()) {
    const Size count = options_.m * options_.n;
    const Size bytes = count * size_of(options_.type);
    partials_ = world.heap().allocate<std::byte>(bytes, "gemm_all_reduce partials");
    CollectiveOptions collective;
    collective.type = options_.type;
    collective.max_count = count;
    if (team_.one_node() && team_.size == 2 && bytes > kLeastOneShot && bytes <= kMostOneShot) {
      collective.algorithm = "one_shot";
      collective.blocks = kOneShotBlocks;
    }
    all_reduce_ = make_collective(world, Collective::kAllReduce, collective);
    const std::string& algorithm = all_reduce_->algorithm();
    straight_ = algorithm == "one_shot" || algorithm.find("_ll") != std::string::npos;
    if (!straight_) sums_ = world.heap().allocate<std::byte>(bytes, "gemm_all_reduce sums");
  }

 private:
  void enqueue(Stream& main, const OperatorCall& call) override {
    void* const c = call.c[0];
    const Size count = call.m * options_.n;
    if (options_.form != Form::kCommunicationOnly) main.gemm(gemm(call), team_);
    if (options_.form == Form::kComputeOnly) return;
    const Symm<std::byte> out = straight_ ? Symm<std::byte>(static_cast<std::byte*>(c), 0, team_.me) : sums_;
    all_reduce_->run(main, partials_, out, count);
    if (!straight_) main.copy_async(c, sums_.local(), count * size_of(options_.type));
  }

  Gemm gemm(const OperatorCall& call) const {
    Gemm gemm;
    gemm.m = call.m;
    gemm.n = options_.n;
    gemm.k = split(options_.k, team_.size)[team_.me].size();
    gemm.type = gemm.out_type = options_.type;
    gemm.tile_m = options_.tile_m;
    gemm.tile_n = options_.tile_n;
    gemm.panel_group = options_.panel_group;
    gemm.a = call.a;
    gemm.b = call.b[0];
    gemm.c = partials_.local();
    gemm.rows = {call.m, 1, 1, 1};
    return gemm;
  }

  OperatorOptions options_;
  Team team_;
  bool straight_ = false;  // the collective writes no result but the own one: it goes straight to the user's
  Symm<std::byte> partials_;
  Symm<std::byte> sums_;
  std::unique_ptr<CollectivePlan> all_reduce_;
};

}  // namespace

std::unique_ptr<OperatorPlan> make_gemm_all_reduce_sequential(World& world, const Settings& settings) {
  return std::make_unique<GemmAllReduceSequential>(world, settings);
}

}  // namespace tandem::ops
