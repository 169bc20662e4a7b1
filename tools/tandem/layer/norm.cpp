// all_reduce_norm on the command line.
#include <fmt/format.h>

#include "collectives/reference/norm_example.h"
#include "tandem/error.h"
#include "tools/tandem/layer/layer_run.h"
#include "tools/tandem/options/options.h"

namespace tandem::cli {
namespace {

constexpr const char* kNormName = "all_reduce_norm";

class NormCall final : public LayerCall {
 public:
  NormCall(const AllReduceNormOptions& options, int pes)
      : options_(options), example_(options, pes, options.max_rows, 1) {}

  void begin(World& world) override {
    SymmetricHeap& heap = world.heap();
    plan_ = make_all_reduce_norm(world, options_);
    const Size row = options_.hidden * size_of(options_.type);
    const auto symmetric = [&](Size bytes, const char* what) { return heap.allocate<std::byte>(bytes, what); };
    const int pe = world.pe();
    const Symm<std::byte> in = symmetric(options_.max_rows * row, "in");
    if (!world.phantom()) world.copy_in(in.local(), example_.in(pe).data(), options_.max_rows * row);
    call_ = {.rows = options_.max_rows, .in = in};
    call_.residual = local_copy(world, example_.sum_bytes(pe), "residual", [&] { return example_.residual(pe); });
    if (options_.norm != Norm::kNone)
      call_.weight = local_copy(world, row, "weight", [&] { return example_.weight(); });
    call_.out = symmetric(example_.out_bytes(), "out");
    call_.sum = symmetric(example_.sum_bytes(0), "sum");  // PE 0 has the most rows
    if (example_.scales_bytes() > 0) call_.scales = symmetric(example_.scales_bytes(), "scales").as<float>();
  }

  void call(Stream& stream) override { plan_->run(stream, call_); }

  void verify(World& world, Check& check) override {
    const auto out = host_copy(world, call_.out.local(), example_.out_bytes());
    const auto sum = host_copy(world, call_.sum.local(), example_.sum_bytes(world.pe()));
    const auto scales = host_copy(world, call_.scales ? call_.scales.local() : nullptr, example_.scales_bytes());
    const kernels::NormErrors errors = example_.errors(world.pe(), out.data(), sum.data(), scales.data());
    check.checked += errors.checked;
    check.wrong += errors.wrong;
    if (errors.wrong > 0) check.max_error.reset();
    check.expectation = "bit for bit";
  }

  double bytes_per_pe() const override {
    return static_cast<double>(3 * example_.sum_bytes(0) + example_.out_bytes() + example_.scales_bytes()) +
           static_cast<double>(options_.max_rows * options_.hidden * size_of(options_.type));
  }
  std::string algorithm() const override { return plan_->options().algorithm; }
  std::vector<OptionChoice> choices() const override { return plan_->choices(); }

 private:
  AllReduceNormOptions options_;
  kernels::NormExample example_;
  std::unique_ptr<AllReduceNormPlan> plan_;
  AllReduceNormCall call_;
};

Result result_of(const AllReduceNormOptions& o, Size rows) {
  Result result;
  result.op = kNormName;
  result.shape = fmt::format("{}x{}", rows, o.hidden);
  result.dtype = name(o.type);
  result.extras = fmt::format("{} norm", name(o.norm));
  if (o.quantisation != Quantisation::kNone) result.extras += fmt::format(", fp8_e4m3 by {}", name(o.quantisation));
  if (o.sharded_residual) result.extras += ", sharded residual";
  return result;
}

}  // namespace

LayerRun make_norm_run(const Arguments& a) {
  refuse_all_but_layer_options(a);
  constexpr Size kRows = 16, kHidden = 8192;
  AllReduceNormOptions o;
  o.type = dtype_option(a, DType::kBF16);
  o.hidden = a.hidden ? parse_size("--hidden", *a.hidden) : kHidden;
  if (a.norm) o.norm = parse_norm(*a.norm);
  if (a.quantise) o.quantisation = parse_quantisation(*a.quantise);
  o.sharded_residual = a.sharded_residual;
  o.algorithm = a.algorithm.value_or("");
  o.blocks = a.blocks.value_or(0);
  LayerRun run;
  run.unit = "rows";
  run.size = a.rows ? parse_size("--rows", *a.rows) : kRows;
  run.make = [o](Size rows, int pes) {
    AllReduceNormOptions sized = o;
    sized.max_rows = rows;
    return std::make_unique<NormCall>(sized, pes);
  };
  run.describe = [o](Size rows) { return result_of(o, rows); };
  LayerChoices choices;
  choices.op = o.quantisation == Quantisation::kNone ? kNormName : "all_reduce_norm_fp8";
  choices.element_bytes = size_of(o.type);
  choices.bytes_per_unit = o.hidden * choices.element_bytes;
  for (const AllReduceNormAlgorithm& one : all_reduce_norm_algorithms()) choices.algorithms.push_back(one.name);
  choices.blocks = {1, 2, 4, 8, 16, 32, 64, 128};
  run.choices = choices;
  run.warmups = a.warmups;
  run.iterations = a.iterations.value_or(1);
  return run;
}

}  // namespace tandem::cli
