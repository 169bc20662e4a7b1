#include "collectives/plan/collective.h"

#include <fmt/format.h>

#include "base/log.h"
#include "collectives/plan/checked_plan.h"
#include "collectives/plan/staged_plan.h"
#include "tandem/error.h"

namespace tandem {

namespace kernels {

namespace {

std::vector<OptionChoice> choices_of(const CollectivePlan& plan, const CollectiveChoice& choice, int threads) {
  const bool default_threads = threads == CollectiveOptions{}.threads;
  std::string of_blocks;
  if (choice.blocks_source == OptionSource::kTable) of_blocks = "as the algorithm";
  if (choice.blocks_source == OptionSource::kRule) of_blocks = "by the size of a call and the kernel";
  return {{"algorithm", choice.algorithm, choice.algorithm_source, choice.reason},
          {"blocks", std::to_string(plan.blocks()), choice.blocks_source, of_blocks},
          {"threads", std::to_string(threads), default_threads ? OptionSource::kRule : OptionSource::kCaller,
           default_threads ? "default" : ""}};
}

/// The end of the log's line about a plan.
std::string origin(const CollectiveChoice& choice) {
  if (choice.algorithm_source == OptionSource::kCaller) return "given by the caller";
  return choice.algorithm_source == OptionSource::kTable ? "chosen by the " + choice.reason : choice.reason;
}

}  // namespace

void refuse(const AlgorithmInfo& info, const std::string& why) {
  throw Unsupported(fmt::format("{} algorithm '{}' {}", name(info.collective), info.name, why));
}

void check_call(const std::string& collective_and_algorithm, Symm<const std::byte> in, Symm<std::byte> out, Size count,
                Size max_count, std::size_t alignment) {
  if (count < 0 || count > max_count)
    throw InvalidArgument(fmt::format("count: {} given to {}, allowed are 0 to {} (max_count)", count,
                                      collective_and_algorithm, max_count));
  if (count > 0 && (!in || !out))
    throw InvalidArgument(fmt::format("{}: no buffer given to {}; every PE gives both, also without elements",
                                      in ? "out" : "in", collective_and_algorithm));
  const auto begin = [](const std::byte* buffer) { return reinterpret_cast<std::uintptr_t>(buffer); };
  if (count > 0 && (begin(in.local()) | begin(out.local())) % alignment != 0)
    throw InvalidArgument(fmt::format("in, out: {} and {} given to {}, allowed are multiples of {} bytes",
                                      begin(in.local()), begin(out.local()), collective_and_algorithm, alignment));
}

}  // namespace kernels

void CollectivePlan::run_scaled(Stream&, Symm<const std::byte>, Symm<std::byte>, Size, const RunScale&) {
  throw InvalidArgument("scale: one of a run given, allowed is a plan of premul_sum with scale_of_run");
}

std::unique_ptr<CollectivePlan> make_collective(World& world, Collective collective, const CollectiveOptions& options) {
  return make_collective(world, collective, options, world.team());
}

std::unique_ptr<CollectivePlan> make_collective(World& world, Collective collective, const CollectiveOptions& options,
                                                const Team& team) {
  using namespace kernels;
  CollectiveOptions complete = options;
  const CollectiveChoice choice = choose_collective(world, collective, options, team);
  const Algorithm& algorithm = algorithm_for(collective, options.wire, choice.algorithm);
  if (!can_run(algorithm, team))
    refuse(
        algorithm.info,
        fmt::format("needs loads and stores between all PEs, which this team of {} nodes does not have", team.nodes()));
  if (const std::string why = why_unfit(algorithm, world.machine(), options); !why.empty()) refuse(algorithm.info, why);
  if (algorithm.info.by_copy_engine && world.checks_calls())
    refuse(algorithm.info, "cannot be held back where calls differ, which CudaOptions::check_calls promises");
  complete.algorithm = choice.algorithm;
  complete.blocks = choice.blocks;
  log_line(team.me == 0 ? LogLevel::kInfo : LogLevel::kTrace, [&] {
    return fmt::format("{} of at most {} {} on {} PEs: {}, {} blocks, {}", name(collective), options.max_count,
                       name(options.type), team.size, choice.algorithm,
                       choice.blocks > 0 ? std::to_string(choice.blocks) : "default", origin(choice));
  });
  detail::NotedAllocations allocations = world.note_allocations();
  auto plan = compare_calls(world, collective, complete, team, staged_buffers(algorithm.info, complete, team),
                            [&] { return make_with_copies(world, complete, team, algorithm); });
  plan->choices_ = choices_of(*plan, choice, complete.threads);
  plan->memory_ = allocations.take();
  return plan;
}

}  // namespace tandem
