/// Plans of all_reduce_norm. A call has up to eight buffers and counts rows, so CollectivePlan::run does not fit it.
/// Signals, staging and the comparison of calls are those of collectives.

#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "base/log.h"
#include "collectives/all_reduce_norm/algorithms.h"
#include "collectives/all_reduce_norm/check.h"
#include "collectives/all_reduce_norm/row_parts.h"
#include "collectives/all_reduce_norm/selection.h"
#include "collectives/plan/plan.h"
#include "runtime/mismatch_detector.h"
#include "tandem/error.h"

namespace tandem {

namespace kernels {

namespace {

/// The text by which PEs compare their plans.
std::string describe(const AllReduceNormOptions& o) {
  return fmt::format(
      "all_reduce_norm {} {} hidden {} norm {} epsilon {} quantisation {} scale {}{}{}{}{}{} in {} blocks "
      "of at most {} rows",
      o.algorithm, name(o.type), o.hidden, name(o.norm), o.epsilon, name(o.quantisation), o.scale,
      o.residual ? " residual" : "", o.bias ? " bias" : "", o.norm_bias ? " norm_bias" : "", o.sum ? " sum" : "",
      o.sharded_residual ? " sharded" : "", o.blocks, o.max_rows);
}

/// Returns the choices that were made, with their sources.
std::vector<OptionChoice> choices_of(const AllReduceNormOptions& asked, const AllReduceNormOptions& complete,
                                     const std::optional<tune::SelectedChoice>& tuned, int most_blocks) {
  const std::string table = tuned ? fmt::format("selection table {}: {}", tuned->table, tuned->source) : "";
  OptionChoice algorithm{"algo", complete.algorithm, OptionSource::kCaller, ""};
  if (asked.algorithm.empty()) {
    algorithm.source = tuned ? OptionSource::kTable : OptionSource::kRule;
    algorithm.reason = tuned ? table : "by bytes of the rows, as measured for few and predicted for many";
  }
  OptionChoice blocks{"blocks", std::to_string(complete.blocks), OptionSource::kCaller, ""};
  if (asked.blocks == 0) {
    const bool is_tuned = tuned && tuned->blocks > 0;
    const bool splits = named_norm(complete.algorithm).about.splits_rows;
    blocks.source = is_tuned ? OptionSource::kTable : OptionSource::kRule;
    blocks.reason =
        is_tuned ? table
                 : fmt::format("one for each {} of a PE, at most {}", splits ? "2 KB of a row" : "row", most_blocks);
  }
  return {algorithm, blocks};
}

}  // namespace

}  // namespace kernels

AllReduceNormPlan::AllReduceNormPlan(World& world, const AllReduceNormOptions& options)
    : world_(world), options_(options) {}

std::unique_ptr<AllReduceNormPlan> make_all_reduce_norm(World& world, const AllReduceNormOptions& options) {
  using namespace kernels;
  check(options);
  const Team team = world.team();
  if (!team.one_node())
    throw Unsupported(fmt::format("all_reduce_norm: needs loads and stores between all PEs, which {} nodes do not have",
                                  team.nodes()));
  AllReduceNormOptions complete = options;
  const std::optional<tune::SelectedChoice> tuned =
      options.algorithm.empty() ? tuned_norm(world, options) : std::nullopt;
  if (options.algorithm.empty())
    complete.algorithm = tuned ? tuned->algorithm : suitable_norm_algorithm(options, team.size, world.machine());
  const RegisteredNorm& chosen = named_norm(complete.algorithm);
  const int most_blocks = chosen.most_blocks(world.machine());
  check_blocks(options, most_blocks);
  if (options.sharded_residual && !chosen.about.two_shots)
    throw Unsupported(
        fmt::format("all_reduce_norm algorithm '{}': cannot norm rows whose residual another PE holds, "
                    "allowed with sharded_residual is two_shot",
                    complete.algorithm));
  const Size rows = chosen.about.two_shots ? ceil_div(options.max_rows, team.size) : options.max_rows;
  if (options.blocks == 0) {
    const Size parts = chosen.about.splits_rows ? count_row_parts(options.hidden, size_of(options.type)) : 1;
    complete.blocks = static_cast<int>(std::clamp<Size>(std::max<Size>(rows, 1) * parts, 1, most_blocks));
    // A table may be of shorter rows with as many bytes. A row has a block for each of its parts.
    if (tuned && tuned->blocks > 0)
      complete.blocks = std::min(complete.blocks, std::max(tuned->blocks, static_cast<int>(parts)));
  }
  log_line(team.me == 0 ? LogLevel::kInfo : LogLevel::kTrace, [&] { return describe(complete); });
  detail::NotedAllocations allocations = world.note_allocations();
  const std::size_t number = world.calls() != nullptr ? world.calls()->add(describe(complete), team) : 0;
  auto plan = chosen.make(world, complete);
  plan->choices_ = choices_of(options, complete, tuned, most_blocks);
  plan->number_ = number;
  if (world.checks_calls()) {
    PlanSetup setup(world, team, "all_reduce_norm agreement", 1, 0);
    constexpr Size kWordsAndSlots = 4;
    plan->comparison_ = {.what = "all_reduce_norm " + complete.algorithm,
                         .signature = call_signature(describe(complete)),
                         .count = 0,
                         .words = setup.signals(kWordsAndSlots * team.size, "words"),
                         .calls = setup.epochs()};
  }
  plan->memory_ = allocations.take();
  return plan;
}

void AllReduceNormPlan::run(Stream& stream, const AllReduceNormCall& call) {
  kernels::check(options_, world_, call, kernels::named_norm(options_.algorithm).about.two_shots);
  const auto enqueue_all = [&] {
    if (world_.checks_calls()) {
      detail::CallComparison agreement = comparison_;
      agreement.count = call.rows;
      stream.compare_call(agreement, world_.team());
    }
    if (call.rows > 0) enqueue(stream, call);
  };
  if (MismatchDetector* const calls = world_.calls(); calls != nullptr)
    calls->note(number_, call.rows, enqueue_all);
  else
    enqueue_all();
}

}  // namespace tandem
