#include "tools/tandem/tune/layer_tune.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "tandem/error.h"
#include "tools/tandem/layer/layer_run.h"
#include "tools/tandem/tune/sweep.h"
#include "tools/tandem/tune/tune_place.h"

namespace tandem::cli {
namespace {

const LayerSubject* layer_of(const std::string& text) {
  for (const LayerSubject& one : layer_subjects())
    if (text == one.name) return &one;
  return nullptr;
}

LayerRun make_run(const TuneOptions& a, const std::string& subject) {
  return tuned_layer_run(a, subject, *layer_of(subject));
}

/// Adds the times of one algorithm with one number of blocks at all sizes that have as many rows.
void measure(const TuneOptions& a, const std::string& subject, const std::string& algorithm, int blocks,
             const TunePlace& place, Sweep& sweep) {
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
      throw InvalidArgument(
          fmt::format("OP: '{}' given, whose choices no table has; allowed of a layer's calls are all_reduce_norm and "
                      "merge_heads, or those of experts",
                      subject));
  }
  if (layers != 0 && layers != a.subjects.size())
    throw InvalidArgument("OP: calls of a layer and others given, allowed are either in one run");
  return layers != 0;
}

std::vector<Sweep> tune_layers(const TuneOptions& a) {
  const TunePlace place(a);
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
