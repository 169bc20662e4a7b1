// dispatch_gemm and gemm_combine of experts on the command line.
#include <fmt/format.h>

#include "operators/reference/expert_gemm_trial.h"
#include "tandem/error.h"
#include "tools/tandem/layer/expert_options.h"
#include "tools/tandem/layer/layer_run.h"
#include "tools/tandem/options/options.h"
#include "tools/tandem/run/run_operator.h"

namespace tandem::cli {
namespace {

/// The operator that is timed: the second product behind a first one made before, or routing and first product.
enum class Half { kDispatchGemm, kGemmCombine };

class ExpertGemmsCall final : public LayerCall {
 public:
  ExpertGemmsCall(const ExpertGemmOptions& options, const kernels::ExpertInput& input, Half half, int pes)
      : options_(options), input_(input), half_(half), pes_(pes) {}

  void begin(World& world) override {
    plan_ = make_expert_gemms(world, options_);
    trial_ = ops::make_expert_gemm_trial(world, *plan_, input_);
    if (half_ == Half::kDispatchGemm) return;
    Stream stream = world.make_stream("first product");
    trial_->route(stream);
    trial_->dispatch_gemm(stream);
    stream.synchronize();
  }

  void call(Stream& stream) override {
    if (half_ == Half::kGemmCombine) return trial_->gemm_combine(stream);
    trial_->route(stream);
    trial_->dispatch_gemm(stream);
  }

  void verify(World&, Check& check) override {
    const kernels::ExpertErrors errors = trial_->errors();
    check.checked += errors.checked;
    check.wrong += errors.wrong;
    if (errors.wrong > 0) check.max_error.reset();
    const bool is_exact = options_.activation == Activation::kNone || options_.activation == Activation::kRelu;
    const bool is_fp8 = options_.experts.wire != ExpertWire::kType;
    check.expectation = is_exact ? "bit for bit" : is_fp8 ? "within 15% of the terms" : "within 3% of the terms";
  }

  /// Weights, rows before and after both products, and rows on their way.
  double bytes_per_pe() const override {
    const ExpertOptions& e = options_.experts;
    const ExpertSizes sizes = expert_gemm_sizes(options_, pes_);
    const double rows = static_cast<double>(sizes.rows) * static_cast<double>(2 * e.hidden + options_.intermediate);
    const double weights = 3.0 * experts_of_pe(e, pes_) * static_cast<double>(e.hidden * options_.intermediate);
    const double staging = 10.0 * pes_ * static_cast<double>(e.max_tokens * e.hidden);
    return (rows + weights + staging) * static_cast<double>(size_of(e.type));
  }
  std::string algorithm() const override {
    const ExpertGemmOptions& o = plan_->options();
    return name(half_ == Half::kDispatchGemm ? o.dispatch_gemm : o.gemm_combine);
  }
  std::vector<OptionChoice> choices() const override {
    std::vector<OptionChoice> own;
    for (OptionChoice choice : plan_->choices()) {
      if (choice.option == (half_ == Half::kDispatchGemm ? "gemm_combine" : "dispatch_gemm")) continue;
      if (choice.option == "column-chunks" && half_ == Half::kDispatchGemm) continue;
      if (choice.option == "dispatch_gemm" || choice.option == "gemm_combine") choice.option = "algo";
      own.push_back(std::move(choice));
    }
    return own;
  }

 private:
  ExpertGemmOptions options_;
  kernels::ExpertInput input_;
  Half half_;
  int pes_;
  std::unique_ptr<ExpertGemmPlan> plan_;
  std::unique_ptr<ops::ExpertGemmTrial> trial_;
};

ExpertForm form_of(const char* op, const std::string& algorithm) {
  for (const ExpertForm form : {ExpertForm::kSequential, ExpertForm::kOverlapped})
    if (algorithm == name(form)) return form;
  throw InvalidArgument(fmt::format("--algo: {} has no '{}'; it has sequential, overlapped", op, algorithm));
}

ExpertGemmOptions options_of(const char* op, Half half, const Arguments& a) {
  ExpertGemmOptions o;
  o.experts = expert_options(a);
  const Size whole = a.intermediate ? parse_size("--intermediate", *a.intermediate) : expert_model(a).intermediate;
  if (const int parts = o.experts.tp_size; parts < 1 || whole % parts != 0)
    throw InvalidArgument(
        fmt::format("--tp-size: {} given, allowed are divisors of the {} columns between both products", parts, whole));
  o.intermediate = whole / o.experts.tp_size;
  if (a.activation) o.activation = parse_activation(*a.activation);
  if (a.tile) {
    const TileSize tile = parse_tile(*a.tile);
    o.tile_m = tile.m;
    o.tile_n = tile.n;
  }
  o.communication_sms = a.communication_sms.value_or(-1);
  o.column_chunks = a.column_chunks.value_or(0);
  // The half that is not timed only makes data.
  o.dispatch_gemm = half == Half::kDispatchGemm ? ExpertForm::kRule : ExpertForm::kSequential;
  o.gemm_combine = half == Half::kGemmCombine ? ExpertForm::kRule : ExpertForm::kSequential;
  if (a.algorithm) (half == Half::kDispatchGemm ? o.dispatch_gemm : o.gemm_combine) = form_of(op, *a.algorithm);
  return o;
}

Result result_of(const char* op, const ExpertGemmOptions& o, const std::string& routing, Size tokens) {
  Result result;
  result.op = op;
  result.shape = fmt::format("{}x{}x{}", tokens, o.experts.hidden, o.intermediate * o.experts.tp_size);
  result.dtype = name(o.experts.type);
  result.extras = fmt::format("{} of {} experts, {}", o.experts.top_k, o.experts.experts, routing);
  if (o.experts.tp_size > 1) result.extras += fmt::format(", tp {}", o.experts.tp_size);
  if (o.experts.wire != ExpertWire::kType) result.extras += fmt::format(", fp8_e4m3 {}", name(o.experts.wire));
  return result;
}

LayerRun make_gemms_run(const char* op, Half half, const Arguments& a) {
  refuse_all_but_layer_options(a);
  constexpr Size kTokens = 128;
  const ExpertGemmOptions o = options_of(op, half, a);
  const kernels::ExpertInput input = expert_input(a);
  LayerRun run;
  run.unit = "tokens";
  run.size = a.tokens ? parse_size("--tokens", *a.tokens) : kTokens;
  run.make = [o, input, half](Size tokens, int pes) {
    ExpertGemmOptions sized = o;
    kernels::ExpertInput filled = input;
    sized.experts.max_tokens = filled.tokens = tokens;
    return std::make_unique<ExpertGemmsCall>(sized, filled, half, pes);
  };
  run.experts = [o](Size tokens) {
    ExpertGemmOptions sized = o;
    sized.experts.max_tokens = tokens;
    sized.experts = routing_options(sized);
    return sized;
  };
  run.describe = [op, o, input](Size tokens) { return result_of(op, o, input.routing, tokens); };
  run.warmups = a.warmups;
  run.iterations = a.iterations.value_or(1);
  return run;
}

}  // namespace

LayerRun make_dispatch_gemm_run(const Arguments& a) { return make_gemms_run("dispatch_gemm", Half::kDispatchGemm, a); }
LayerRun make_gemm_combine_run(const Arguments& a) { return make_gemms_run("gemm_combine", Half::kGemmCombine, a); }

}  // namespace tandem::cli
