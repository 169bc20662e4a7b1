#include "tools/tandem/run/run_norm.h"

#include <fmt/format.h>

#include "collectives/reference/norm_example.h"
#include "tandem/error.h"
#include "tools/tandem/options/options.h"
#include "tools/tandem/run/measure.h"
#include "tools/tandem/run/run_program.h"

namespace tandem::cli {
namespace {

using kernels::NormExample;

/// One run on all PEs: buffers, calls, checks.
class Program {
 public:
  Program(const NormRun& run, int pes, std::function<void()> after_call)
      : run_(run),
        example_(run.options, pes, run.options.max_rows, 1),
        measurement_(run.warmups, run.iterations, std::move(after_call)) {}

  void operator()(World& world) {
    SymmetricHeap& heap = world.heap();
    const auto plan = make_all_reduce_norm(world, run_.options);
    algorithm_ = plan->options().algorithm;
    choices_ = plan->choices();
    const bool real = !world.phantom();
    const Size row = run_.options.hidden * size_of(run_.options.type);
    const auto symmetric = [&](Size bytes, const char* what) { return heap.allocate<std::byte>(bytes, what); };
    const auto local = [&](Size bytes, const char* what, const auto& contents) {
      auto* const memory = heap.allocate_local<std::byte>(bytes, what);
      if (real) world.copy_in(memory, contents().data(), bytes);
      return memory;
    };
    const Symm<std::byte> in = symmetric(run_.options.max_rows * row, "in");
    if (real) world.copy_in(in.local(), example_.in(world.pe()).data(), run_.options.max_rows * row);
    AllReduceNormCall call{.rows = run_.options.max_rows, .in = in};
    call.residual = local(example_.sum_bytes(world.pe()), "residual", [&] { return example_.residual(world.pe()); });
    if (run_.options.norm != Norm::kNone) call.weight = local(row, "weight", [&] { return example_.weight(); });
    call.out = symmetric(example_.out_bytes(), "out");
    call.sum = symmetric(example_.sum_bytes(0), "sum");  // PE 0 has the most rows
    if (example_.scales_bytes() > 0) call.scales = symmetric(example_.scales_bytes(), "scales").as<float>();
    Stream stream = world.make_stream("main");
    measurement_.run(
        world, stream, [] {}, [&] { plan->run(stream, call); });
    if (real) verify(world, call);
  }

  /// Returns the bytes of a PE's buffers.
  double bytes_per_pe() const {
    return static_cast<double>(3 * example_.sum_bytes(0) + example_.out_bytes() + example_.scales_bytes()) +
           static_cast<double>(run_.options.max_rows * run_.options.hidden * size_of(run_.options.type));
  }
  const std::string& algorithm() const { return algorithm_; }
  const std::vector<OptionChoice>& choices() const { return choices_; }
  const Measurement& measurement() const { return measurement_; }
  const Check& check() const { return check_; }

 private:
  void verify(World& world, const AllReduceNormCall& call) {
    const auto host = [&](const void* memory, Size bytes) {
      std::vector<std::byte> copy(static_cast<std::size_t>(bytes));
      world.copy_out(copy.data(), memory, bytes);
      return copy;
    };
    const auto out = host(call.out.local(), example_.out_bytes());
    const auto sum = host(call.sum.local(), example_.sum_bytes(world.pe()));
    const auto scales = host(call.scales ? call.scales.local() : nullptr, example_.scales_bytes());
    const kernels::NormErrors errors = example_.errors(world.pe(), out.data(), sum.data(), scales.data());
    check_.checked += errors.checked;
    check_.wrong += errors.wrong;
    if (errors.wrong > 0) check_.max_error.reset();
    check_.expectation = "bit for bit";
  }

  const NormRun& run_;
  NormExample example_;
  Measurement measurement_;
  std::string algorithm_;
  std::vector<OptionChoice> choices_;
  Check check_;
};

/// Returns the parts of a result that do not depend on where it ran.
Result result_of(const NormRun& run, int pes) {
  const AllReduceNormOptions& o = run.options;
  Result result;
  result.op = kNormName;
  result.pes = pes;
  result.shape = fmt::format("{}x{}", o.max_rows, o.hidden);
  result.dtype = name(o.type);
  result.extras = fmt::format("{} norm", name(o.norm));
  if (o.quantisation != Quantisation::kNone) result.extras += fmt::format(", fp8_e4m3 by {}", name(o.quantisation));
  if (o.sharded_residual) result.extras += ", sharded residual";
  return result;
}

}  // namespace

NormRun make_norm_run(const Arguments& a) {
  refuse_all_but_norm_options(a);
  constexpr Size kRows = 16, kHidden = 8192;
  NormRun run;
  AllReduceNormOptions& o = run.options;
  o.type = a.dtype.empty() ? DType::kBF16 : parse_dtype(a.dtype);
  o.max_rows = a.rows ? parse_size("--rows", *a.rows) : kRows;
  o.hidden = a.hidden ? parse_size("--hidden", *a.hidden) : kHidden;
  try {
    if (a.norm) o.norm = parse_norm(*a.norm);
    if (a.quantise) o.quantisation = parse_quantisation(*a.quantise);
  } catch (const InvalidArgument& error) {
    throw InvalidArgument(fmt::format("--{}", error.what()));
  }
  o.sharded_residual = a.sharded_residual;
  o.algorithm = a.algorithm.value_or("");
  o.blocks = a.blocks.value_or(0);
  run.warmups = a.warmups;
  run.iterations = a.iterations.value_or(1);
  return run;
}

NormRun make_norm_run(const RunOptions& options) {
  if (options.bytes)
    throw InvalidArgument(
        fmt::format("--bytes: does not apply to {}, whose size is given by --rows and --hidden", kNormName));
  NormRun run = make_norm_run(static_cast<const Arguments&>(options));
  run.explain = options.explain;
  return run;
}

Result run_norm(const NormRun& run, Setup setup, Pictures& pictures, Progress& progress) {
  Program program(run, setup.pes, [&progress] { progress.advance(); });
  const Result result = result_of(run, setup.pes);
  return simulate(program, result, fmt::format("{} of {}", kNormName, *result.shape), run.explain, std::move(setup),
                  pictures, progress);
}

Result run_norm_on_host(const NormRun& run, const HostJob& job) {
  const auto make = [&] { return Program(run, job.pes, [] {}); };
  return run_on_host(job, result_of(run, job.pes), make().bytes_per_pe(), run.explain, make);
}

}  // namespace tandem::cli
