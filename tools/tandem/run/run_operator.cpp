#include "tools/tandem/run/run_operator.h"

#include <fmt/format.h>

#include <cstring>
#include <memory>

#include "machine/gemm_fit_range.h"
#include "tandem/advanced/gemm_scales.h"
#include "tools/tandem/data/operator_data.h"
#include "tools/tandem/data/operator_extras.h"
#include "tools/tandem/run/measure.h"

namespace tandem::cli {
namespace {

/// Returns whether the form's result is not meaningful.
bool is_part(Form form) { return form == Form::kComputeOnly || form == Form::kCommunicationOnly; }

/// One run of an operator on all PEs: buffers, calls, checks. `data` is null in phantom mode. A part alone has data,
/// but no result to check.
class OperatorProgram {
 public:
  /// `after_call`: see Measurement.
  OperatorProgram(const OperatorRun& run, const OperatorMatrices* data, std::uint64_t seed,
                  std::function<void()> after_call)
      : run_(run), data_(data), seed_(seed), measurement_(run.warmups, run.iterations, std::move(after_call)) {}

  void operator()(World& world) {
    auto& heap = world.heap();
    const OperatorShard shard = operator_shard(run_.op, run_.shape(), world.num_pes(), world.pe());
    const Size element = size_of(run_.options.type);
    auto* const a = heap.allocate_local<std::byte>(shard.a_elements() * size_of(run_.a_type()), "a");
    auto* const b = heap.allocate_local<std::byte>(shard.b_elements() * element, "b");
    const Size c_bytes = columns_after(run_.options.activation, shard.c_elements()) * size_of(run_.options.c_type());
    auto* const c = heap.allocate_local<std::byte>(c_bytes, "c");
    const auto plan = make_operator(world, run_.op, run_.options);
    options_ = plan->options();
    choices_ = plan->choices();
    strategy_ = plan->strategy(run_.options.m);
    OperatorExtras extras(world, run_, seed_);
    if (data_ != nullptr) {
      data_->fill(world.pe(), a, b);
      extras.fill(run_.options.m);
    }
    Stream stream = world.make_stream("main");
    constexpr int nan_in_every_type = 0xFF;
    const auto wipe = [&] {
      if (data_ != nullptr) std::memset(c, nan_in_every_type, static_cast<std::size_t>(c_bytes));
    };
    measurement_.run(world, stream, wipe, [&] { plan->run(stream, extras.call(run_.options.m, a, b, c)); });
    if (data_ != nullptr && !is_part(run_.options.form)) data_->check(world.pe(), c, check_);
  }

  const Measurement& measurement() const { return measurement_; }
  const Check& check() const { return check_; }
  /// Returns the plan's options, with every choice made.
  const OperatorOptions& options() const { return options_; }
  const std::vector<OptionChoice>& choices() const { return choices_; }
  const std::string& strategy() const { return strategy_; }

 private:
  const OperatorRun& run_;
  const OperatorMatrices* data_;
  std::uint64_t seed_;
  Measurement measurement_;
  Check check_;
  OperatorOptions options_;
  std::vector<OptionChoice> choices_;
  std::string strategy_;
};

/// Returns the form or the strategy for these rows, and the transport if it is a choice.
std::string algorithm_name(const OperatorOptions& o, const std::string& strategy) {
  const bool moves = strategy == name(o.form) || strategy == "chain" || strategy == "two_shot";
  if (o.form == Form::kComputeOnly || !moves) return strategy;
  return fmt::format("{}_{}_{}", strategy, o.copy_by == CopyBy::kCopyEngine ? "ce" : "sm",
                     o.direction == Direction::kPush ? "push" : "pull");
}

/// Returns the time of another form of the same run, in phantom mode.
double baseline(const OperatorRun& run, const Setup& setup, Form form, Pictures& pictures, Progress& progress) {
  progress.begin(fmt::format("{}: {}, for comparison", name(run.op), name(form)));
  OperatorRun other = run;
  other.options.form = form;
  Setup phantom = setup;
  phantom.options.phantom = true;
  phantom.options.record = pictures.wants_report() && form == Form::kSequential;
  Simulation simulation(phantom.machine, phantom.pes, phantom.options);
  OperatorProgram program(other, nullptr, setup.options.seed, [&progress] { progress.advance(); });
  simulation.run([&](World& world) { program(world); });
  if (phantom.options.record) pictures.add(name(form), simulation.timeline(), program.measurement().last());
  return program.measurement().mean_us();
}

void add_baselines(Result& result, const OperatorRun& run, const Setup& setup, Pictures& pictures, Progress& progress) {
  result.sequential_us = run.options.form == Form::kSequential
                             ? result.time_us
                             : baseline(run, setup, Form::kSequential, pictures, progress);
  result.ideal_us = std::max(baseline(run, setup, Form::kComputeOnly, pictures, progress),
                             baseline(run, setup, Form::kCommunicationOnly, pictures, progress));
}

/// Returns why the prediction lies outside the measured range, judged by one PE's product, or "".
std::string beyond_fit(const OperatorRun& run, const Setup& setup) {
  const bool gather = run.op == Operator::kAllGatherGemm;
  const OperatorOptions& o = run.options;
  const GemmShape local{o.m, gather ? ceil_div(o.n, setup.pes) : o.n, gather ? o.k : ceil_div(o.k, setup.pes),
                        static_cast<int>(size_of(o.type))};
  return detail::beyond_gemm_fit(setup.machine, local);
}

/// The parts of a result that do not depend on where it ran.
Result result_of(const OperatorRun& run, int pes) {
  Result result;
  result.op = name(run.op);
  result.pes = pes;
  const Shape shape = run.shape();
  result.shape = shape.text();
  result.gemm = GemmShape{shape.m, shape.n, shape.k, static_cast<int>(size_of(run.options.type))};
  result.dtype = name(run.options.type);
  result.extras = extras_text(run);
  return result;
}

}  // namespace

/// Bytes of A, B, the gathered rows or the staged sums, and C.
double bytes_per_pe(const OperatorRun& run, int pes) {
  const auto m = static_cast<double>(run.options.m), n = static_cast<double>(run.options.n),
             k = static_cast<double>(run.options.k);
  double shared = (m * k + n * k) / pes + 2 * m * n + m * n / pes;
  if (run.op == Operator::kAllGatherGemm) shared = m * k + m * k / pes + (n * k + m * n) / pes;
  if (run.op == Operator::kGemmAllReduce) shared += m * n;
  // Residual, sum and partial sums, or residual, sum and the reference's rows.
  const double of_norm = run.op == Operator::kAllGatherGemm ? m * k : m * n;
  const double normed = run.options.norm.any() ? 3 * of_norm : 0;
  const auto steps = static_cast<double>(run.options.block_scales ? scale_blocks(run.options.k) : 1);
  const double extras = 4 * (m + 2 * n) * steps + 4 * normed;  // bias and scales, of f32
  // Elements of C are at least as large as those of A and B.
  return shared * static_cast<double>(size_of(run.options.result_type())) + extras;
}

int parts_of(const OperatorRun& run) {
  const int calls = run.warmups + run.iterations;
  if (is_part(run.options.form)) return calls;
  return run.options.form == Form::kSequential ? 3 * calls : 4 * calls;
}

Result run_operator_on_host(const OperatorRun& run, const HostJob& job) {
  const OperatorData data(run, job.pes, job.seed);
  Result result = result_of(run, job.pes);
  CallWindow window;
  int nodes = 1;
  const auto run_one = [&](World& world, Shared& shared) {
    OperatorProgram program(run, &data, job.seed, [] {});
    program(world);
    const double us = shared.largest(program.measurement().mean_us());
    const Check check = shared.over_all(program.check());
    const CallWindow last = shared.over_all(program.measurement().last());
    if (!job.keeps_result_of(world.pe())) return;
    if (run.explain) result.options = program.choices();
    result.algorithm = algorithm_name(program.options(), program.strategy());
    result.time_us = us;
    nodes = world.team().nodes();
    if (!is_part(run.options.form)) result.check = check;
    window = last;
  };
  job.run(bytes_per_pe(run, job.pes), run_one, job.to_pictures(result, window));
  job.describe(result, nodes);
  return result;
}

Result run_operator(const OperatorRun& run, Setup setup, Pictures& pictures, Progress& progress,
                    const OperatorMatrices* given) {
  reserve_memory(setup, bytes_per_pe(run, setup.pes));
  setup.options.record = pictures.wanted();
  Simulation simulation(setup.machine, setup.pes, setup.options);

  std::unique_ptr<OperatorData> random;
  if (!setup.options.phantom && given == nullptr) {
    progress.begin(fmt::format("{}: random matrices", name(run.op)));
    random = std::make_unique<OperatorData>(run, setup.pes, setup.options.seed);
  }
  const OperatorMatrices* const data = setup.options.phantom ? nullptr : random ? random.get() : given;
  progress.begin(fmt::format("{} {} on {} PEs", name(run.op), run.shape().text(), setup.pes));
  OperatorProgram program(run, data, setup.options.seed, [&progress] { progress.advance(); });
  simulation.run([&](World& world) { program(world); });

  Result result = result_of(run, setup.pes);
  result.machine = setup.machine.name;
  result.assumption = assumption_of(setup);
  result.algorithm = algorithm_name(program.options(), program.strategy());
  if (run.explain) result.options = program.choices();
  result.seed = setup.options.seed;
  result.phantom = setup.options.phantom;
  if (data != nullptr && !is_part(run.options.form)) result.check = program.check();
  result.time_us = program.measurement().mean_us();
  result.beyond_fit = beyond_fit(run, setup);
  result.trace_hash = simulation.trace_hash();
  pictures.compare_with(setup.machine);
  if (pictures.wanted()) pictures.add(result.algorithm, simulation.timeline(), program.measurement().last());
  if (!is_part(run.options.form)) add_baselines(result, run, setup, pictures, progress);
  return result;
}

}  // namespace tandem::cli
