#include "tools/tandem/layer/layer_run.h"

#include <fmt/format.h>

#include "tandem/error.h"
#include "tools/tandem/run/measure.h"
#include "tools/tandem/run/run_program.h"

namespace tandem::cli {
namespace {

/// One run on all PEs.
class Program {
 public:
  Program(const LayerRun& run, Size size, int pes, std::function<void()> after_call)
      : run_(run), size_(size), pes_(pes), measurement_(run.warmups, run.iterations, std::move(after_call)) {}

  void operator()(World& world) {
    if (run_.on_world && world.pe() == 0) run_.on_world(world);
    const auto call = run_.make(size_, pes_);
    call->begin(world);
    algorithm_ = call->algorithm();
    choices_ = call->choices();
    Stream stream = world.make_stream("main");
    measurement_.run(
        world, stream, [] {}, [&] { call->call(stream); });
    if (!world.phantom()) call->verify(world, check_);
  }

  double bytes_per_pe() const { return run_.make(size_, pes_)->bytes_per_pe(); }
  const std::string& algorithm() const { return algorithm_; }
  const std::vector<OptionChoice>& choices() const { return choices_; }
  const Measurement& measurement() const { return measurement_; }
  const Check& check() const { return check_; }

 private:
  const LayerRun& run_;
  Size size_;
  int pes_;
  Measurement measurement_;
  std::string algorithm_;
  std::vector<OptionChoice> choices_;
  Check check_;
};

}  // namespace

const std::vector<LayerSubject>& layer_subjects() {
  static const std::vector<LayerSubject> all{
      {"all_reduce_norm", make_norm_run},     {"merge_heads", make_heads_run},
      {"exchange_heads", make_exchange_run},  {"dispatch", make_dispatch_run},
      {"combine", make_combine_run},          {"dispatch_gemm", make_dispatch_gemm_run},
      {"gemm_combine", make_gemm_combine_run}};
  return all;
}

LayerRun make_layer_run(const LayerSubject& subject, const RunOptions& options) {
  if (options.bytes)
    throw InvalidArgument(fmt::format("--bytes: does not apply to {}, which has options for its size", subject.name));
  LayerRun run = subject.make(options);
  run.explain = options.explain;
  return run;
}

Result run_layer(const LayerRun& run, Size size, Setup setup, Pictures& pictures, Progress& progress) {
  Program program(run, size, setup.pes, [&progress] { progress.advance(); });
  Result result = run.describe(size);
  result.pes = setup.pes;
  const std::string what = fmt::format("{} of {}", result.op, *result.shape);
  return simulate(program, result, what, run.explain, std::move(setup), pictures, progress);
}

Result run_layer_on_host(const LayerRun& run, Size size, const HostJob& job) {
  const auto make = [&] { return Program(run, size, job.pes, [] {}); };
  Result result = run.describe(size);
  result.pes = job.pes;
  return run_on_host(job, result, make().bytes_per_pe(), run.explain, make);
}

std::string layer_header(const LayerRun& run) {
  return fmt::format("#{:>8} {:<18} {:>6} {:>11} {:>7}  {:<16}{}", run.unit, " shape", "type", "time (us)", "#wrong",
                     "algorithm", "result");
}

std::string layer_row(Size size, const Result& result) {
  return fmt::format("{:>9}  {:<17} {:>6} {:>11.2f} {:>7}  {:<16}{}", size, *result.shape, result.dtype, result.time_us,
                     result.check ? fmt::format("{}", result.check->wrong) : "N/A", result.algorithm, result.extras);
}

std::vector<std::byte> host_copy(World& world, const void* memory, Size bytes) {
  std::vector<std::byte> copy(static_cast<std::size_t>(bytes));
  world.copy_out(copy.data(), memory, bytes);
  return copy;
}

std::byte* local_copy(World& world, Size bytes, const char* what, const std::function<std::vector<std::byte>()>& data) {
  auto* const memory = world.heap().allocate_local<std::byte>(bytes, what);
  if (!world.phantom()) world.copy_in(memory, data().data(), bytes);
  return memory;
}

}  // namespace tandem::cli
