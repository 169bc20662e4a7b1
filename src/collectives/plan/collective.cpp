#include "collectives/plan/collective.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "base/log.h"
#include "collectives/plan/checked_plan.h"
#include "collectives/plan/staged_plan.h"
#include "collectives/plan/team_check.h"
#include "tandem/error.h"
#include "tune/selection.h"

namespace tandem {

namespace kernels {

namespace {

/// The name of a collective, and the sizes of its buffers in multiples of `count`, on a PE that has them.
struct Traits {
  const char* name;
  bool reduces;
  bool in_times_pes;
  bool out_times_pes;
  bool in_at_root;   ///< only the root has an input
  bool out_at_root;  ///< only the root has an output
  std::span<const Algorithm> (*algorithms)();
};

/// In the order of the enumeration.
constexpr std::array<Traits, kCollectives> kTraits{{
    {"all_reduce", true, false, false, false, false, all_reduce_algorithms},
    {"all_gather", false, false, true, false, false, all_gather_algorithms},
    {"reduce_scatter", true, true, false, false, false, reduce_scatter_algorithms},
    {"all_to_all", false, true, true, false, false, all_to_all_algorithms},
    {"broadcast", false, false, false, true, false, broadcast_algorithms},
    {"reduce", true, false, false, false, true, reduce_algorithms},
    {"gather", false, false, true, false, true, gather_algorithms},
    {"scatter", false, true, false, true, false, scatter_algorithms},
    {"send_recv", false, false, false, false, false, send_recv_algorithms},
    {"exchange", false, false, false, false, false, exchange_algorithms},
}};

const Traits& traits(Collective collective) {
  const auto number = static_cast<std::size_t>(collective);
  if (number >= kTraits.size()) throw InvalidArgument(fmt::format("collective: no number {}", number));
  return kTraits[number];
}

Size bytes_of(Collective collective, const CollectiveOptions& options, const Team& team) {
  return size_of(options.type) *
         max(input_elements(collective, options.max_count, team.size, options.root, options.root),
             output_elements(collective, options.max_count, team.size, options.root, options.root));
}

const Algorithm* find(Collective collective, const std::string& algorithm) {
  for (const Algorithm& candidate : algorithms_of(collective))
    if (candidate.info.name == algorithm) return &candidate;
  return nullptr;
}

bool can_run(const Algorithm& algorithm, const Team& team) { return team.one_node() || !algorithm.info.one_node_only; }

std::string why_unfit(const Algorithm& algorithm, const Machine& machine, const CollectiveOptions& options) {
  return algorithm.unfit == nullptr ? "" : algorithm.unfit(machine, options);
}

/// Returns the tables' choice (src/tune/selection.h) for the largest call, else the first algorithm that the team can
/// run.
CollectiveChoice choose(const World& world, Collective collective, const CollectiveOptions& options, const Team& team) {
  const auto is_possible = [&](const std::string& algorithm) {
    const Algorithm* const found = find(collective, algorithm);
    const bool has_copy_engine = world.machine().gpu.copy_engines > 0 && !world.checks_calls();
    return found != nullptr && can_run(*found, team) && (has_copy_engine || !found->info.by_copy_engine) &&
           why_unfit(*found, world.machine(), options).empty();
  };
  const tune::Query query{collective, team.one_node(), team.size, size_of(options.type),
                          bytes_of(collective, options, team)};
  const auto copies = [&](const std::string& algorithm) {
    return copies_us(staged_buffers(find(collective, algorithm)->info, options, team), collective, options, team);
  };
  if (const auto choice = tune::choose(world.machine(), options.selection, query, is_possible, copies))
    return {choice->algorithm, std::min(choice->blocks, world.machine().gpu.sm_count), OptionSource::kTable,
            choice->blocks > 0 ? OptionSource::kTable : OptionSource::kRule,
            fmt::format("selection table {}: {}", choice->table, choice->source)};
  for (const Algorithm& algorithm : algorithms_of(collective))
    if (is_possible(algorithm.info.name))
      return {.algorithm = algorithm.info.name, .reason = "the first algorithm that can run, as no table has an entry"};
  throw Unsupported(fmt::format("{}: no algorithm runs on a team of {} nodes", name(collective), team.nodes()));
}

const Algorithm& named(Collective collective, const std::string& algorithm) {
  const Algorithm* const found = find(collective, algorithm);
  if (found != nullptr) return *found;
  std::string names;
  for (const Algorithm& candidate : algorithms_of(collective))
    names += (names.empty() ? "" : ", ") + candidate.info.name;
  throw InvalidArgument(fmt::format("algorithm: {} has no '{}'; it has {}", name(collective), algorithm, names));
}

void check(Collective collective, const CollectiveOptions& options, const Machine& machine, const Team& team) {
  const char* const what = name(collective);
  constexpr Size most_bytes = Size{1} << 46;  // of one buffer, so that no product overflows
  const Size most_count = most_bytes / max(size_of(options.type), 1) / team.size;
  if (options.max_count < 0 || options.max_count > most_count)
    throw InvalidArgument(
        fmt::format("max_count: {} given to {}, allowed are 0 to {}", options.max_count, what, most_count));
  if (options.root < 0 || options.root >= team.size)
    throw InvalidArgument(fmt::format("root: {} given to {}, allowed are 0 to {}", options.root, what, team.size - 1));
  if (reduces(collective) && (options.op < ReduceOp::kSum || options.op > ReduceOp::kPremulSum))
    throw InvalidArgument(
        fmt::format("op: {} given to {}, allowed are the values of ReduceOp", static_cast<int>(options.op), what));
  if (options.threads < 32 || options.threads > 1024 || options.threads % 32 != 0)
    throw InvalidArgument(
        fmt::format("threads: {} given to {}, allowed are multiples of 32 from 32 to 1024", options.threads, what));
  // Blocks wait for blocks of their index on other PEs, so all of them have to be resident.
  const int most =
      machine.gpu.sm_count * std::min(machine.gpu.max_blocks_per_sm, machine.gpu.max_threads_per_sm / options.threads);
  if (options.blocks < 0 || options.blocks > most)
    throw InvalidArgument(
        fmt::format("blocks: {} given to {}, allowed are 1 to {} of {} threads on {}, or 0 for a choice by size",
                    options.blocks, what, most, options.threads, machine.name));
}

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

std::span<const Algorithm> algorithms_of(Collective collective) { return traits(collective).algorithms(); }

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

int default_blocks(Size bytes, const Team& team) {
  // One block nearly fills a NIC. But data from one NIC is forwarded to the whole node, and eight blocks fill a PE's
  // port. More blocks would multiply the messages.
  if (!team.one_node()) return static_cast<int>(std::clamp<Size>(bytes >> 20, 1, 8));
  // 512 threads move 8 KiB at once. Eight blocks of 1024 threads fill a link with stores; 32 blocks of 512 cover the
  // latency of loads. Large reductions by loads improve up to 128 blocks (bench/results/h200x2.json).
  const Size most = bytes < (Size{4} << 20) ? 32 : 128;
  return static_cast<int>(std::clamp<Size>(bytes >> 13, 1, most));
}

}  // namespace kernels

const char* name(Collective collective) { return kernels::traits(collective).name; }

Collective parse_collective(const std::string& text) {
  std::string names;
  for (int i = 0; i < kCollectives; ++i) {
    const auto collective = static_cast<Collective>(i);
    if (text == name(collective)) return collective;
    names += fmt::format("{}{}", i == 0 ? "" : ", ", name(collective));
  }
  throw InvalidArgument(fmt::format("collective: no '{}'; there are {}", text, names));
}

bool reduces(Collective collective) { return kernels::traits(collective).reduces; }

Size input_elements(Collective collective, Size count, int pes, int pe, int root) {
  const auto& t = kernels::traits(collective);
  return t.in_at_root && pe != root ? 0 : t.in_times_pes ? count * pes : count;
}

Size output_elements(Collective collective, Size count, int pes, int pe, int root) {
  const auto& t = kernels::traits(collective);
  return t.out_at_root && pe != root ? 0 : t.out_times_pes ? count * pes : count;
}

const std::vector<AlgorithmInfo>& collective_algorithms() {
  static const std::vector<AlgorithmInfo> all = [] {
    std::vector<AlgorithmInfo> infos;
    for (const auto& traits : kernels::kTraits)
      for (const kernels::Algorithm& algorithm : traits.algorithms()) infos.push_back(algorithm.info);
    return infos;
  }();
  return all;
}

std::unique_ptr<CollectivePlan> make_collective(World& world, Collective collective, const CollectiveOptions& options) {
  return make_collective(world, collective, options, world.team());
}

CollectiveChoice choose_collective(const World& world, Collective collective, const CollectiveOptions& options,
                                   const Team& team) {
  using namespace kernels;
  check_team(world, team);
  check(collective, options, world.machine(), team);
  if (options.algorithm.empty()) {
    CollectiveChoice choice = choose(world, collective, options, team);
    // If a call runs in chunks, their size decides.
    CollectiveOptions of_chunk = options;
    const Staged staged = staged_buffers(named(collective, choice.algorithm).info, options, team);
    of_chunk.max_count = std::min(options.max_count, staged_chunk(staged, collective, options, team));
    if (of_chunk.max_count < options.max_count) choice = choose(world, collective, of_chunk, team);
    if (options.blocks > 0) choice.blocks = options.blocks;
    if (options.blocks > 0) choice.blocks_source = OptionSource::kCaller;
    return choice;
  }
  return {named(collective, options.algorithm).info.name, options.blocks, OptionSource::kCaller,
          options.blocks > 0 ? OptionSource::kCaller : OptionSource::kRule};
}

std::unique_ptr<CollectivePlan> make_collective(World& world, Collective collective, const CollectiveOptions& options,
                                                const Team& team) {
  using namespace kernels;
  CollectiveOptions complete = options;
  const CollectiveChoice choice = choose_collective(world, collective, options, team);
  const Algorithm& algorithm = named(collective, choice.algorithm);
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
                            make_with_copies(world, complete, team, algorithm));
  plan->choices_ = choices_of(*plan, choice, complete.threads);
  plan->memory_ = allocations.take();
  return plan;
}

}  // namespace tandem
