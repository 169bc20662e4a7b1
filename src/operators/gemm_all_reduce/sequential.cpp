/// GEMM + AllReduce, one after the other. A whole GEMM leaves its partial sums in symmetric memory, and the library's
/// choice of collective adds them.

#include "operators/plan/gemm_descriptor.h"
#include "tandem/collectives.h"

namespace tandem::ops {

namespace {

class GemmAllReduceSequential final : public OperatorPlan {
 public:
  GemmAllReduceSequential(World& world, const Settings& settings)
      : OperatorPlan(settings.options), settings_(settings), team_(world.team()) {
    const OperatorOptions& o = settings.options;
    const Size count = o.m * o.n;
    const Size bytes = o.m * settings.result_row_bytes();
    partials_ = world.heap().allocate<std::byte>(bytes, "gemm_all_reduce partials");
    CollectiveOptions collective;
    collective.type = o.result_type();
    collective.max_count = count;
    const AllReduceRows& rows = settings.all_reduce;
    if (o.m > rows.collective_above && o.m <= rows.collective_one_shot) {
      collective.algorithm = "one_shot";
      collective.blocks = rows.collective_blocks;
    }
    all_reduce_ = make_collective(world, Collective::kAllReduce, collective);
    const std::string& algorithm = all_reduce_->algorithm();
    straight_ = algorithm == "one_shot" || algorithm.find("_ll") != std::string::npos;
    if (!straight_) sums_ = world.heap().allocate<std::byte>(bytes, "gemm_all_reduce sums");
  }

 private:
  void enqueue(Stream& main, const OperatorCall& call) override {
    void* const c = call.c[0];
    const Form form = settings_.options.form;
    if (form != Form::kCommunicationOnly) main.gemm(gemm(call), team_);
    if (form == Form::kComputeOnly) return;
    const Symm<std::byte> out = straight_ ? Symm<std::byte>(static_cast<std::byte*>(c), 0, team_.me) : sums_;
    all_reduce_->run(main, partials_, out, call.m * settings_.options.n);
    if (!straight_) main.copy_async(c, sums_.local(), call.m * settings_.result_row_bytes());
  }

  Gemm gemm(const OperatorCall& call) const {
    Gemm gemm = partial_gemm(settings_, team_, call);
    gemm.destination = GemmLocal{partials_.local()};
    gemm.rows = {call.m, 1, 1, 1};
    return gemm;
  }

  Settings settings_;
  Team team_;
  bool straight_ = false;  // only the own result is written, so it goes directly to the user's memory
  Symm<std::byte> partials_;
  Symm<std::byte> sums_;
  std::unique_ptr<CollectivePlan> all_reduce_;
};

}  // namespace

std::unique_ptr<OperatorPlan> make_gemm_all_reduce_sequential(World& world, const Settings& settings) {
  return std::make_unique<GemmAllReduceSequential>(world, settings);
}

}  // namespace tandem::ops
