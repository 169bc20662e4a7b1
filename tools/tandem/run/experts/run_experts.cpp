#include "tools/tandem/run/experts/run_experts.h"

#include <fmt/format.h>

#include "collectives/reference/expert_choices.h"
#include "tandem/error.h"
#include "tools/tandem/options/options.h"
#include "tools/tandem/options/usage_message.h"
#include "tools/tandem/run/measure.h"
#include "tools/tandem/run/run_program.h"

namespace tandem::cli {
namespace {

/// One run on all PEs: buffers, calls, checks.
class Program {
 public:
  Program(const ExpertsRun& run, int pes, std::function<void()> after_call)
      : run_(run), pes_(pes), measurement_(run.warmups, run.iterations, std::move(after_call)) {}

  void operator()(World& world) {
    const auto plan = make_experts(world, run_.options);
    blocks_ = plan->options().blocks;
    const auto trial = kernels::make_expert_trial(world, *plan, run_.input);
    Stream stream = world.make_stream("main");
    if (run_.combines) {
      trial->route(stream);
      stream.synchronize();
    }
    measurement_.run(
        world, stream, [] {},
        [&] {
          if (!run_.combines) trial->route(stream);
          run_.combines ? trial->combine(stream) : trial->dispatch(stream);
        });
    const kernels::ExpertErrors errors = trial->errors();
    check_.checked += errors.checked;
    check_.wrong += errors.wrong;
    if (errors.wrong > 0) check_.max_error.reset();
    check_.expectation = "bit for bit";
  }

  /// Returns the bytes of a PE's buffers: rows of experts before and after them, packets.
  double bytes_per_pe() const {
    const ExpertOptions& o = run_.options;
    const auto tokens = static_cast<double>(pes_ * o.max_tokens);
    return tokens * static_cast<double>(o.hidden * size_of(o.type)) * (2.0 * o.top_k + 10);
  }
  const std::string& algorithm() const { return algorithm_; }
  std::vector<OptionChoice> choices() const {
    const bool is_given = run_.options.blocks > 0;
    return {{"blocks", std::to_string(blocks_), is_given ? OptionSource::kCaller : OptionSource::kRule,
             is_given ? "" : "one for each piece of a row, at most four for each SM"}};
  }
  const Measurement& measurement() const { return measurement_; }
  const Check& check() const { return check_; }

 private:
  const ExpertsRun& run_;
  int pes_;
  Measurement measurement_;
  std::string algorithm_ = "packets";
  int blocks_ = 0;
  Check check_;
};

/// Returns the parts of a result that do not depend on where it ran.
Result result_of(const ExpertsRun& run, int pes) {
  const ExpertOptions& o = run.options;
  Result result;
  result.op = run.op();
  result.pes = pes;
  result.shape = fmt::format("{}x{}", run.input.tokens, o.hidden);
  result.dtype = name(o.type);
  result.extras = fmt::format("{} of {} experts, {}, {}", o.top_k, o.experts, run.input.routing, name(o.layout));
  if (o.wire != ExpertWire::kType) result.extras += fmt::format(", fp8_e4m3 {}", name(o.wire));
  return result;
}

struct Model {
  const char* name;
  Size hidden;
  int experts;
  int top_k;
};
// config.json of deepseek-ai/DeepSeek-V3, mistralai/Mixtral-8x7B-v0.1 and Qwen/Qwen3-30B-A3B.
constexpr Model kModels[] = {
    {"deepseek-v3:moe", 7168, 256, 8}, {"mixtral-8x7b:moe", 4096, 8, 2}, {"qwen3-30b-a3b:moe", 2048, 128, 8}};

const Model& model_named(const std::string& text) {
  std::vector<std::string> names;
  for (const Model& model : kModels) {
    if (text == model.name) return model;
    names.emplace_back(model.name);
  }
  throw InvalidArgument(fmt::format("--model: '{}' given, allowed is one of {}{}", text, fmt::join(names, ", "),
                                    did_you_mean(text, names)));
}

}  // namespace

ExpertsRun make_experts_run(bool combines, const Arguments& a) {
  refuse_all_but_experts_options(a);
  constexpr Size kTokens = 128;
  const Model& model = model_named(a.model.value_or(kModels[0].name));
  ExpertsRun run;
  run.combines = combines;
  ExpertOptions& o = run.options;
  o.type = a.dtype.empty() ? DType::kBF16 : parse_dtype(a.dtype);
  o.hidden = a.hidden ? parse_size("--hidden", *a.hidden) : model.hidden;
  o.experts = a.experts.value_or(model.experts);
  o.top_k = a.top_k.value_or(model.top_k);
  o.align = a.align.value_or(1);
  o.blocks = a.blocks.value_or(0);
  run.set_tokens(a.tokens ? parse_size("--tokens", *a.tokens) : kTokens);
  run.input.routing = a.routing.value_or("random");
  run.input.seed = a.seed;
  try {
    kernels::check_expert_routing(run.input.routing);
    if (a.wire) o.wire = parse_expert_wire(*a.wire);
    if (a.layout) o.layout = parse_expert_layout(*a.layout);
  } catch (const InvalidArgument& error) {
    throw InvalidArgument(fmt::format("--{}", error.what()));
  }
  if (a.algorithm && *a.algorithm != "packets")
    throw InvalidArgument(fmt::format("--algo: {} has no '{}'; it has packets", run.op(), *a.algorithm));
  run.warmups = a.warmups;
  run.iterations = a.iterations.value_or(1);
  return run;
}

ExpertsRun make_experts_run(bool combines, const RunOptions& options) {
  if (options.bytes)
    throw InvalidArgument(
        fmt::format("--bytes: does not apply to {}, whose size is given by --tokens and --hidden", options.subject));
  ExpertsRun run = make_experts_run(combines, static_cast<const Arguments&>(options));
  run.explain = options.explain;
  return run;
}

Result run_experts(const ExpertsRun& run, Setup setup, Pictures& pictures, Progress& progress) {
  Program program(run, setup.pes, [&progress] { progress.advance(); });
  const Result result = result_of(run, setup.pes);
  return simulate(program, result, fmt::format("{} of {}", run.op(), *result.shape), run.explain, std::move(setup),
                  pictures, progress);
}

Result run_experts_on_host(const ExpertsRun& run, const HostJob& job) {
  const auto make = [&] { return Program(run, job.pes, [] {}); };
  return run_on_host(job, result_of(run, job.pes), make().bytes_per_pe(), run.explain, make);
}

}  // namespace tandem::cli
