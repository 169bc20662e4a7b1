#include "tools/tandem/tune/layer_tune.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <map>

#include "tandem/error.h"
#include "tools/tandem/host/commands.h"
#include "tools/tandem/host/host_job.h"
#include "tools/tandem/layer/layer_run.h"
#include "tools/tandem/main/commands.h"
#include "tools/tandem/main/gpu.h"
#include "tools/tandem/tune/sweep.h"

namespace tandem::cli {
namespace {

constexpr int kTuneCalls = 5;

using Show = std::function<void(Size, const Result&)>;

/// Runs a call at some sizes on one of the backends.
class Place {
 public:
  explicit Place(const TuneOptions& a) : a_(a) {
    if (a.on_host()) host_ = make_host_job(a);
    if (a.in_real_time()) return;
    simulated_ = make_setup(a);
    simulated_->options.phantom = true;  // Times do not depend on data.
  }

  void run(const LayerRun& run, const std::vector<Size>& sizes, const Show& show) const {
    if (a_.on_gpus()) return layer_tune_on_gpus(a_, run, sizes, show);
    for (const Size size : sizes) show(size, simulated_ ? simulate(run, size) : run_layer_on_host(run, size, *host_));
  }
  /// Returns the most blocks that are worth a trial.
  int most_blocks() const { return host_ ? most_tuned_blocks(host_->pes) : std::numeric_limits<int>::max(); }

 private:
  Result simulate(const LayerRun& run, Size size) const {
    Pictures none;
    Progress progress(parts_of(run));
    return run_layer(run, size, *simulated_, none, progress);
  }

  const TuneOptions& a_;
  std::optional<HostJob> host_;
  std::optional<Setup> simulated_;
};

const LayerSubject* layer_of(const std::string& text) {
  for (const LayerSubject& one : layer_subjects())
    if (text == one.name) return &one;
  return nullptr;
}

LayerRun make_run(const TuneOptions& a, const std::string& subject) {
  Arguments one = a;
  one.subject = subject;
  if (a.in_real_time() && !a.iterations) one.iterations = kTuneCalls;
  return layer_of(subject)->make(one);
}

/// Adds the times of one algorithm with one number of blocks at all sizes that have as many rows.
void measure(const TuneOptions& a, const std::string& subject, const std::string& algorithm, int blocks,
             const Place& place, Sweep& sweep) {
  TuneOptions one = a;
  if (!algorithm.empty()) one.algorithm = algorithm;
  one.blocks = blocks;
  LayerRun run = make_run(one, subject);
  run.on_world = [&sweep](const World& world) {
    sweep.machine = world.machine().name;
    sweep.processor = world.machine().processor;
    sweep.group.pes = world.num_pes();
  };
  const LayerChoices& choices = *run.choices;
  std::vector<Size> sizes = layer_sizes(a);
  std::erase_if(sizes, [&](Size size) { return size * choices.parts_per_unit < blocks; });
  if (sizes.empty() || blocks > place.most_blocks()) return;
  try {
    place.run(run, sizes, [&](Size size, const Result& result) {
      if (result.check && !result.check->correct())
        throw CheckFailed(
            fmt::format("{} {} of {}: {} wrong elements", result.op, result.algorithm, size, result.check->wrong));
      sweep.measured.push_back({size * choices.bytes_per_unit, result.algorithm, blocks, result.time_us});
    });
  } catch (const Unsupported&) {  // a grid that does not fit
  } catch (const Deadlock&) {     // more blocks than are resident
  }
}

void print_sizes(const TuneOptions& a, const Sweep& sweep) {
  std::map<Size, std::vector<tune::Measured>> by_size;
  for (const tune::Measured& one : sweep.measured) by_size[one.bytes].push_back(one);
  for (const auto& [bytes, all] : by_size) print_sweep_line(a, sweep.group.layer, bytes, all);
}

}  // namespace

bool names_tuned_layers(const TuneOptions& a) {
  std::size_t layers = 0;
  for (const std::string& subject : a.subjects) {
    if (layer_of(subject) == nullptr) continue;
    ++layers;
    if (a.rows || a.batch)
      throw InvalidArgument(
          fmt::format("--{}: does not apply to tune, whose sizes are -b to -e", a.rows ? "rows" : "batch"));
    if (a.sharded_residual)
      throw InvalidArgument("--sharded-residual: does not apply to tune, since its rows have one algorithm");
    if (!make_run(a, subject).choices)
      throw InvalidArgument(fmt::format(
          "OP: '{}' given, whose choices no table has; allowed of a layer's calls are all_reduce_norm and merge_heads",
          subject));
  }
  if (layers != 0 && layers != a.subjects.size())
    throw InvalidArgument("OP: calls of a layer and others given, allowed are either in one run");
  return layers != 0;
}

std::vector<Sweep> tune_layers(const TuneOptions& a) {
  const Place place(a);
  std::vector<Sweep> sweeps;
  for (const std::string& subject : a.subjects) {
    const LayerChoices choices = *make_run(a, subject).choices;
    Sweep sweep;
    sweep.group.layer = choices.op;
    sweep.group.element_bytes = static_cast<int>(choices.element_bytes);
    for (const std::string& algorithm : a.algorithm ? std::vector{*a.algorithm} : choices.algorithms)
      for (const int blocks : choices.blocks) measure(a, subject, algorithm, blocks, place, sweep);
    sweep.group.source = sweep_source(
        a.command_line, a.in_real_time() ? sweep.machine : "predicted with the machine model " + sweep.machine);
    if (sweep.machine.empty()) return {};  // The process of PE 0 writes.
    print_sizes(a, sweep);
    sweeps.push_back(std::move(sweep));
  }
  return sweeps;
}

}  // namespace tandem::cli
