// Tries configurations of operators, each as one unit on all PEs.
#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <mutex>

#include "base/version.h"
#include "tandem/advanced/gemm_scales.h"
#include "tandem/advanced/operator_tuning.h"
#include "tandem/error.h"
#include "tandem/simulation.h"
#include "tune/consensus.h"

namespace tandem {

namespace {

/// The arguments of OperatorOptions::norm on one PE. Their values have no effect on times.
class NormInputs {
 public:
  NormInputs(World& world, Operator op, const OperatorOptions& o) : norm_(o.norm) {
    const bool gather = op == Operator::kAllGatherGemm;
    const Size columns = gather ? o.k : o.n;
    const Size rows = op == Operator::kGemmAllReduce ? o.m : split(o.m, world.num_pes())[world.pe()].size();
    const auto buffer = [&](bool wanted, Size count, const char* what) {
      return wanted ? world.heap().allocate_local<std::byte>(count * columns * size_of(o.result_type()), what)
                    : nullptr;
    };
    residual_ = buffer(norm_.residual, rows, "residual");
    weight_ = buffer(norm_.norm != Norm::kNone, 1, "norm weight");
    bias_ = buffer(norm_.norm_bias, 1, "norm bias");
    sum_ = buffer(norm_.sum, rows, "sum");
    // Scales of 128 elements are the most.
    const bool scaled = norm_.quantisation == Quantisation::kRow || norm_.quantisation == Quantisation::kGroup;
    if (scaled) scales_ = world.heap().allocate_local<float>(rows * scale_blocks(columns), "scales of c");
  }

  void add_to(OperatorCall& call) const {
    call.residual = residual_;
    call.norm_weight = weight_;
    call.norm_bias = bias_;
    call.sum = sum_;
    call.scales = scales_;
  }

 private:
  OperatorNorm norm_;
  std::byte *residual_, *weight_, *bias_, *sum_;
  float* scales_ = nullptr;
};

/// The matrices of one PE.
class Matrices {
 public:
  Matrices(World& world, Operator op, const OperatorOptions& o, const TuneSetup& setup) : norm_(world, op, o) {
    const bool gather = op == Operator::kAllGatherGemm;
    const Team team = world.team();
    const auto own = [&](Size whole) { return split(whole, team.size)[team.me].size(); };
    const auto buffer = [&](Size rows, Size columns, const char* what, DType type) {
      return world.heap().allocate_local<std::byte>(rows * columns * size_of(type), what);
    };
    const Size k = gather ? o.k : own(o.k);
    const Size steps = o.block_scales ? scale_blocks(k) : 1;
    // A norm before the gather takes A in the type of the result.
    const DType a_type = gather && o.norm.any() ? o.result_type() : o.type;
    a_ = buffer(gather ? own(o.m) : o.m, k, "a", a_type);
    for (const Size n : o.ns.empty() ? std::vector{o.n} : o.ns) {
      b_.push_back(buffer(gather ? own(n) : n, k, "b", o.type));
      c_.push_back(
          buffer(op == Operator::kGemmReduceScatter ? own(o.m) : o.m, gather ? own(n) : n, "c", o.result_type()));
      if (setup.bias) bias_.push_back(buffer(1, gather ? own(n) : n, "bias", DType::kF32));
      const Size columns = gather ? own(n) : n;
      const Size of_n = o.block_scales ? GemmScales::blocks_of_columns(columns, is_gated(o.activation)) : columns;
      if (setup.scales) b_scale_.push_back(world.heap().allocate_local<float>(of_n * steps, "b scales"));
    }
    const bool norm_makes_scales = gather && o.norm.any();
    if (setup.scales && !norm_makes_scales)
      a_scale_ = world.heap().allocate_local<float>(steps * (gather ? own(o.m) : o.m), "a scales");
  }
  OperatorCall call(Size m) const {
    OperatorCall call{m, a_, b_, c_, bias_, a_scale_, b_scale_};
    norm_.add_to(call);
    return call;
  }

 private:
  NormInputs norm_;
  const void* a_;
  std::vector<const void*> b_, bias_;
  std::vector<void*> c_;
  const float* a_scale_ = nullptr;
  std::vector<const float*> b_scale_;
};

double mean_us(World& world, Stream& stream, const std::function<void()>& call, int calls) {
  call();
  stream.synchronize();
  world.barrier();
  const double begin = world.time_us();
  for (int i = 0; i < calls; ++i) call();
  stream.synchronize();
  return (world.time_us() - begin) / calls;
}

/// Candidates that fail in the simulator are sorted last.
double predict_us(const TuneSetup& measured, const OperatorKey& key, const OperatorOptions& options) {
  SimOptions sim;
  sim.phantom = true;
  sim.graph = true;
  sim.pes_per_node = key.pes_per_node;
  sim.heap_bytes = Size{1} << 40;
  TuneSetup setup;
  setup.calls = 1;
  setup.bias = measured.bias;
  setup.scales = measured.scales;
  double us = std::numeric_limits<double>::max();
  try {
    Simulation(*measured.model, key.pes, sim).run([&](World& world) {
      const OperatorTrial trial = try_operator(world, key.op, options, setup);
      if (trial.failure.empty()) us = trial.us;
    });
  } catch (const Error&) {
  }
  return us;
}

/// The result of a PE. PEs that are threads share the object, and PE 0's result counts. A process has its own.
class Found {
 public:
  /// Returns a lock if this PE's result counts. The caller holds it while it stores the result.
  std::unique_lock<std::mutex> take(const World& world) {
    std::unique_lock lock(mutex_);
    if (world.pe() != 0 && taken_) lock.unlock();
    taken_ = true;
    return lock;
  }

 private:
  std::mutex mutex_;
  bool taken_ = false;
};

void run_trial(OperatorTrial& trial, Operator op, const TuneSetup& setup) {
  Found found;
  try {
    setup.in_world([&](World& world) {
      const OperatorTrial result = try_operator(world, op, trial.options, setup);
      const auto taken = found.take(world);
      if (!taken) return;
      trial.us = result.us;
      trial.failure = result.failure;
    });
  } catch (const Error& error) {
    trial.us = 0;
    trial.failure = error.what();
  }
}

/// Sorts by predicted time and drops candidates beyond `most`, but never the baseline.
std::vector<OperatorTrial*> order_of_trials(std::vector<OperatorTrial>& trials, std::size_t most) {
  std::stable_sort(trials.begin(), trials.end(),
                   [](const auto& x, const auto& y) { return x.predicted_us < y.predicted_us; });
  std::vector<OperatorTrial*> chosen;
  for (OperatorTrial& trial : trials)
    if (chosen.size() < most || trial.options.form == Form::kSequential) chosen.push_back(&trial);
  return chosen;
}

void check(const TuneSetup& setup) {
  if (!setup.in_world)
    throw InvalidArgument("in_world: none given, allowed is a function that runs a host program in a world");
  const auto check_at_least = [](int least, int given, const char* what) {
    if (given < least) throw InvalidArgument(fmt::format("{}: {} given, allowed is {} or more", what, given, least));
  };
  check_at_least(1, setup.calls, "calls");
  check_at_least(0, setup.most, "most");
}

/// Steps that cost time. Numbers such as epsilon do not.
std::string key_text(const OperatorNorm& norm) {
  if (!norm.any()) return "";
  return fmt::format("{}{}{}{}, quantisation {}", name(norm.norm), norm.residual ? ", residual" : "",
                     norm.norm_bias ? ", norm_bias" : "", norm.sum ? ", sum" : "", name(norm.quantisation));
}

int rank(const OperatorTrial& trial) { return trial.us > 0 ? 0 : trial.failure.empty() ? 2 : 1; }

}  // namespace

OperatorKey operator_key(const World& world, Operator op, const OperatorOptions& options) {
  const Team team = world.team();
  const Machine& machine = world.machine();
  // A choice for whole GPUs does not fit parts of them, and vice versa.
  const std::string part = machine.gpu.copy_engines > 0 ? "" : fmt::format(", {} SMs of it", machine.gpu.sm_count);
  // Results are valid for one version of the library.
  return {op,
          options.m,
          options.n,
          options.k,
          options.type,
          options.b_layout,
          team.size,
          team.node_size,
          machine.name + part,
          version(),
          options.fast_accumulation,
          key_text(options.norm)};
}

OperatorTrial try_operator(World& world, Operator op, const OperatorOptions& options, const TuneSetup& setup) {
  tune::Consensus consensus(world);
  OperatorTrial trial;
  trial.options = options;
  std::optional<Matrices> matrices;
  std::unique_ptr<OperatorPlan> plan;
  try {
    matrices.emplace(world, op, options, setup);
    plan = make_operator(world, op, options);
  } catch (const Error& error) {
    trial.failure = error.what();
  }
  if (consensus.most(trial.failure.empty() ? 0 : 1) > 0) {
    if (trial.failure.empty()) trial.failure = "failed on another PE";
    return trial;
  }
  Stream stream = world.make_stream("main");
  const auto call = [&] { plan->run(stream, matrices->call(options.m)); };
  const double mine = setup.time ? setup.time(world, stream, call) : mean_us(world, stream, call, setup.calls);
  constexpr double kPerUs = 1e3;  // the PEs agree on whole nanoseconds
  trial.us = static_cast<double>(consensus.most(static_cast<Epoch>(mine * kPerUs + 0.5))) / kPerUs;
  return trial;
}

OperatorTuning tune_operator(Operator op, const OperatorOptions& problem, const TuneSetup& setup) {
  check(setup);
  OperatorTuning tuning;
  bool one_node = true;
  Found found;
  setup.in_world([&](World& world) {
    const auto taken = found.take(world);
    if (!taken) return;
    tuning.key = operator_key(world, op, problem);
    one_node = world.team().one_node();
  });
  for (const OperatorOptions& options : operator_candidates(op, problem, one_node, tuning.key.pes))
    tuning.trials.push_back({options, setup.model ? predict_us(setup, tuning.key, options) : 0, 0, {}});
  const std::size_t most = setup.model ? static_cast<std::size_t>(setup.most) : tuning.trials.size();
  for (OperatorTrial* const trial : order_of_trials(tuning.trials, most)) {
    run_trial(*trial, op, setup);
    if (setup.watch) setup.watch(*trial);
    const bool is_baseline = trial->us > 0 && trial->options.form == Form::kSequential;
    if (is_baseline && (tuning.sequential_us == 0 || trial->us < tuning.sequential_us))
      tuning.sequential_us = trial->us;
  }
  std::stable_sort(tuning.trials.begin(), tuning.trials.end(),
                   [](const auto& x, const auto& y) { return rank(x) != rank(y) ? rank(x) < rank(y) : x.us < y.us; });
  return tuning;
}

TunedOperator OperatorTuning::entry() const {
  if (trials.empty() || trials.front().us == 0)
    throw Unsupported(fmt::format("{}: no configuration ran, so there is nothing to choose{}", name(key.op),
                                  trials.empty() ? "" : "; the first: " + trials.front().failure));
  return {key, trials.front().options, trials.front().us, sequential_us};
}

}  // namespace tandem
