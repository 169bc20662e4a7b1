#include "collectives/all_reduce_norm/algorithms.h"

#include <fmt/format.h>

#include "collectives/all_reduce_norm/one_shot_ll.h"
#include "collectives/all_reduce_norm/split_rows.h"
#include "collectives/all_reduce_norm/two_shot.h"
#include "collectives/plan/plan.h"
#include "tandem/error.h"

namespace tandem {

namespace kernels {

namespace {

template <class Kernel, class T, class Q>
class NormPlan final : public AllReduceNormPlan {
 public:
  using Args = typename Kernel::Args;

  NormPlan(World& world, const AllReduceNormOptions& o)
      : AllReduceNormPlan(world, o), team_(world.team()), grid_{o.blocks, Kernel::kThreads} {
    world.check_launch<Kernel>(grid_);
    PlanSetup setup(world, team_, "all_reduce_norm " + o.algorithm, grid_.blocks, o.max_rows);
    args_.hidden = o.hidden;
    args_.norm = o.norm;
    args_.quantisation = o.quantisation;
    args_.epsilon = static_cast<float>(o.epsilon);
    args_.scale = static_cast<float>(o.scale);
    args_.sharded_residual = o.sharded_residual;
    if constexpr (requires { Kernel::kKeepsRows; })
      if (!o.sum) args_.kept = setup.template local<T>(grid_.blocks * o.hidden, "sums");
    Kernel::prepare(setup, args_);
  }

 private:
  void enqueue(Stream& stream, const AllReduceNormCall& call) override {
    Args args = args_;
    args.in = call.in.template as<const T>();
    args.residual = static_cast<const T*>(call.residual);
    args.weight = static_cast<const T*>(call.weight);
    args.bias = static_cast<const T*>(call.bias);
    args.norm_bias = static_cast<const T*>(call.norm_bias);
    args.out = call.out.template as<Q>();
    args.sum = call.sum.template as<T>();
    args.scales = call.scales;
    args.rows = call.rows;
    stream.launch<Kernel>(grid_, args, team_);
  }

  Team team_;
  Grid grid_;
  Args args_{};
};

template <template <class, class> class Kernel>
std::unique_ptr<AllReduceNormPlan> make(World& world, const AllReduceNormOptions& o) {
  const auto of_type = [&]<class T>() -> std::unique_ptr<AllReduceNormPlan> {
    if (o.quantisation == Quantisation::kNone) return std::make_unique<NormPlan<Kernel<T, T>, T, T>>(world, o);
    return std::make_unique<NormPlan<Kernel<T, fp8_e4m3>, T, fp8_e4m3>>(world, o);
  };
  if (o.type == DType::kF32) return of_type.template operator()<float>();
  if (o.type == DType::kF16) return of_type.template operator()<f16>();
  return of_type.template operator()<bf16>();
}

template <template <class, class> class Kernel>
RegisteredNorm norm_of(const AllReduceNormAlgorithm& about) {
  return {about, make<Kernel>, detail::kBlocksPerSm<Kernel<float, float>>};
}

const std::vector<RegisteredNorm>& registered() {
  static const std::vector<RegisteredNorm> all{
      norm_of<AllReduceNormOneShotLL>(
          {"one_shot_ll", "every PE sums and norms all rows, which come as packets: few rows", false}),
      norm_of<AllReduceNormOneShotLL128>({"one_shot_ll128", "the same with lines of packets", false}),
      norm_of<AllReduceNormTwoShot>(
          {"two_shot", "each row's owner sums it and writes the sums, or else the normed row, to all: many rows",
           true}),
      norm_of<AllReduceNormSplitRowsLL>(
          {"split_ll", "as one_shot_ll, with each row split over several blocks: very few rows", false, true}),
      norm_of<AllReduceNormSplitRowsLL128>({"split_ll128", "the same with lines of packets", false, true})};
  return all;
}

}  // namespace

const RegisteredNorm& named_norm(const std::string& algorithm) {
  std::string names;
  for (const RegisteredNorm& one : registered()) {
    if (one.about.name == algorithm) return one;
    names += (names.empty() ? "" : ", ") + one.about.name;
  }
  throw InvalidArgument(fmt::format("algorithm: all_reduce_norm has no '{}'; it has {}", algorithm, names));
}

}  // namespace kernels

const std::vector<AllReduceNormAlgorithm>& all_reduce_norm_algorithms() {
  static const std::vector<AllReduceNormAlgorithm> all = [] {
    std::vector<AllReduceNormAlgorithm> list;
    for (const auto& one : kernels::registered()) list.push_back(one.about);
    return list;
  }();
  return all;
}

}  // namespace tandem
