// dispatch and combine of experts on the command line.
#include <fmt/format.h>

#include "collectives/reference/expert_trial.h"
#include "tandem/error.h"
#include "tools/tandem/layer/expert_options.h"
#include "tools/tandem/layer/layer_run.h"
#include "tools/tandem/options/options.h"

namespace tandem::cli {
namespace {

/// The part of the calls that is timed: combine with a routing made before, else routing and dispatch.
enum class Timed { kDispatch, kCombine };

class ExpertsCall final : public LayerCall {
 public:
  ExpertsCall(const ExpertOptions& options, const kernels::ExpertInput& input, Timed timed, int pes)
      : options_(options), input_(input), timed_(timed), pes_(pes) {}

  void begin(World& world) override {
    plan_ = make_experts(world, options_);
    trial_ = kernels::make_expert_trial(world, *plan_, input_);
    if (timed_ == Timed::kDispatch) return;
    Stream stream = world.make_stream("routing");
    trial_->route(stream);
    stream.synchronize();
  }

  void call(Stream& stream) override {
    if (timed_ == Timed::kCombine) return trial_->combine(stream);
    trial_->route_and_dispatch(stream);
  }

  void verify(World&, Check& check) override {
    const kernels::ExpertErrors errors = trial_->errors();
    check.checked += errors.checked;
    check.wrong += errors.wrong;
    if (errors.wrong > 0) check.max_error.reset();
    check.expectation = "bit for bit";
  }

  /// Rows of experts before and after them, and packets.
  double bytes_per_pe() const override {
    const auto tokens = static_cast<double>(pes_ * options_.max_tokens);
    return tokens * static_cast<double>(options_.hidden * size_of(options_.type)) * (2.0 * options_.top_k + 10);
  }
  std::string algorithm() const override { return name(plan_->options().transport); }
  std::vector<OptionChoice> choices() const override { return plan_->choices(); }

 private:
  ExpertOptions options_;
  kernels::ExpertInput input_;
  Timed timed_;
  int pes_;
  std::unique_ptr<ExpertPlan> plan_;
  std::unique_ptr<kernels::ExpertTrial> trial_;
};

Result result_of(const char* op, const ExpertOptions& o, const std::string& routing, Size tokens) {
  Result result;
  result.op = op;
  result.shape = fmt::format("{}x{}", tokens, o.hidden);
  result.dtype = name(o.type);
  result.extras = fmt::format("{} of {} experts, {}, {}", o.top_k, o.experts, routing, name(o.layout));
  if (o.tp_size > 1) result.extras += fmt::format(", tp {}", o.tp_size);
  if (o.wire != ExpertWire::kType) result.extras += fmt::format(", fp8_e4m3 {}", name(o.wire));
  return result;
}

ExpertTransport transport_of(const char* op, const std::string& algorithm) {
  for (const ExpertTransport transport : {ExpertTransport::kFused, ExpertTransport::kPackets, ExpertTransport::kChunks})
    if (algorithm == name(transport)) return transport;
  throw InvalidArgument(fmt::format("--algo: {} has no '{}'; it has fused, packets, chunks", op, algorithm));
}

LayerRun make_experts_run(const char* op, Timed timed, const Arguments& a) {
  refuse_all_but_layer_options(a);
  constexpr Size kTokens = 128;
  ExpertOptions o = expert_options(a);
  if (a.algorithm) o.transport = transport_of(op, *a.algorithm);
  const kernels::ExpertInput input = expert_input(a);
  LayerRun run;
  run.unit = "tokens";
  run.size = a.tokens ? parse_size("--tokens", *a.tokens) : kTokens;
  run.make = [o, input, timed](Size tokens, int pes) {
    ExpertOptions sized = o;
    kernels::ExpertInput filled = input;
    sized.max_tokens = filled.tokens = tokens;
    return std::make_unique<ExpertsCall>(sized, filled, timed, pes);
  };
  run.experts = [o](Size tokens) {
    ExpertGemmOptions sized;
    sized.experts = o;
    sized.experts.max_tokens = tokens;
    return sized;
  };
  run.describe = [op, o, input](Size tokens) { return result_of(op, o, input.routing, tokens); };
  run.warmups = a.warmups;
  run.iterations = a.iterations.value_or(1);
  return run;
}

}  // namespace

LayerRun make_dispatch_run(const Arguments& a) { return make_experts_run("dispatch", Timed::kDispatch, a); }
LayerRun make_combine_run(const Arguments& a) { return make_experts_run("combine", Timed::kCombine, a); }

}  // namespace tandem::cli
