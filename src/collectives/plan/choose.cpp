// The algorithm of a plan: the caller's, or the one that a table or a rule gives.
#include <fmt/format.h>

#include <algorithm>

#include "collectives/plan/collective.h"
#include "collectives/plan/staged_plan.h"
#include "collectives/plan/team_check.h"
#include "tandem/error.h"
#include "tune/selection.h"

namespace tandem {

namespace kernels {

bool can_run(const Algorithm& algorithm, const Team& team) { return team.one_node() || !algorithm.info.one_node_only; }

std::string why_unfit(const Algorithm& algorithm, const Machine& machine, const CollectiveOptions& options) {
  return algorithm.unfit == nullptr ? "" : algorithm.unfit(machine, options);
}

namespace {

Size bytes_of(Collective collective, const CollectiveOptions& options, const Team& team) {
  return size_of(options.type) *
         max(input_elements(collective, options.max_count, team.size, options.root, options.root),
             output_elements(collective, options.max_count, team.size, options.root, options.root));
}

/// Returns whether the PEs of a team are GPUs of several nodes, whose messages go through proxies.
bool goes_by_proxies(const World& world, const Team& team) {
  return world.device() == DeviceKind::kGpu && !team.one_node();
}

/// The tables are predictions for NICs that kernels command. A proxy takes some 10 us for each message, so fewer blocks
/// are quicker there (bench/NOTES.md).
int most_blocks(const World& world, const Team& team, Size bytes) {
  const int sms = world.machine().gpu.sm_count;
  return goes_by_proxies(world, team) ? std::min(sms, static_cast<int>(std::clamp<Size>(bytes >> 19, 1, 8))) : sms;
}

/// Returns whether the call is one for `stream`: a large one on GPUs of a switch, on memory that peers do not reach.
/// The tables hold times of memory that they reach, so a rule takes their place, unless the caller has a table.
bool is_streamed(const Machine& machine, const CollectiveOptions& options, Size bytes) {
  constexpr Size kLeast = Size{8} << 20;
  const bool is_local = (options.local_in || options.local_out) && !options.scale_of_run;
  return is_local && bytes >= kLeast && machine.processor == Processor::kGpu &&
         machine.link.fabric == Fabric::kSwitched && !tune::has_own_table(options.selection);
}

/// The most bytes that go to proxies as packets. Packets are twice as long as their data, and need no signal before
/// and behind it.
constexpr Size kMostPackets = Size{16} << 10;

/// Returns the tables' choice (src/tune/selection.h) for the largest call, else the first algorithm that the team can
/// run.
CollectiveChoice choose(const World& world, Collective collective, const CollectiveOptions& options, const Team& team) {
  const auto is_possible = [&](const std::string& algorithm) {
    const Algorithm* const found = find_algorithm(collective, algorithm);
    if (algorithm == "two_level_ll" && goes_by_proxies(world, team) &&
        bytes_of(collective, options, team) > kMostPackets)
      return false;
    const bool has_copy_engine = world.machine().gpu.copy_engines > 0 && !world.checks_calls();
    return found != nullptr && can_run(*found, team) && (has_copy_engine || !found->info.by_copy_engine) &&
           why_unfit(*found, world.machine(), options).empty();
  };
  if (is_streamed(world.machine(), options, bytes_of(collective, options, team)) && is_possible("stream"))
    return {.algorithm = "stream", .reason = "a rule for large calls on memory that peers do not reach"};
  const tune::Query query{collective, team.one_node(), team.size, size_of(options.type),
                          bytes_of(collective, options, team)};
  const auto copies = [&](const std::string& algorithm) {
    return copies_us(staged_buffers(find_algorithm(collective, algorithm)->info, options, team), collective, options,
                     team, world.machine());
  };
  if (const auto choice = tune::choose(world.machine(), options.selection, query, is_possible, copies))
    return {choice->algorithm, std::min(choice->blocks, most_blocks(world, team, query.bytes)), OptionSource::kTable,
            choice->blocks > 0 ? OptionSource::kTable : OptionSource::kRule,
            fmt::format("selection table {}: {}", choice->table, choice->source)};
  for (const Algorithm& algorithm : algorithms_of(collective))
    if (is_possible(algorithm.info.name))
      return {.algorithm = algorithm.info.name, .reason = "the first algorithm that can run, as no table has an entry"};
  throw Unsupported(fmt::format("{}: no algorithm runs on a team of {} nodes", name(collective), team.nodes()));
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
  if (options.scale_of_run && (!reduces(collective) || options.op != ReduceOp::kPremulSum))
    throw InvalidArgument(fmt::format("scale_of_run: true given to {} {}, allowed with premul_sum", what,
                                      reduces(collective) ? name(options.op) : "without an op"));
  if (options.threads < 32 || options.threads > 1024 || options.threads % 32 != 0)
    throw InvalidArgument(
        fmt::format("threads: {} given to {}, allowed are multiples of 32 from 32 to 1024", options.threads, what));
  check_wire(collective, options);
  // Blocks wait for blocks of their index on other PEs, so all of them have to be resident.
  const int most =
      machine.gpu.sm_count * std::min(machine.gpu.max_blocks_per_sm, machine.gpu.max_threads_per_sm / options.threads);
  if (options.blocks < 0 || options.blocks > most)
    throw InvalidArgument(
        fmt::format("blocks: {} given to {}, allowed are 1 to {} of {} threads on {}, or 0 for a choice by size",
                    options.blocks, what, most, options.threads, machine.name));
}

}  // namespace

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

CollectiveChoice choose_collective(const World& world, Collective collective, const CollectiveOptions& options,
                                   const Team& team) {
  using namespace kernels;
  check_team(world, team);
  check(collective, options, world.machine(), team);
  if (options.wire != WireFormat::kType)
    return {.algorithm = quantised_algorithm(collective)->info.name,
            .blocks = options.blocks,
            .blocks_source = options.blocks > 0 ? OptionSource::kCaller : OptionSource::kRule,
            .reason = std::string("the algorithm for ") + name(options.wire) + " on the wire"};
  if (options.algorithm.empty()) {
    CollectiveChoice choice = choose(world, collective, options, team);
    // If a call runs in chunks, their size decides.
    CollectiveOptions of_chunk = options;
    const Staged staged = staged_buffers(algorithm_named(collective, choice.algorithm).info, options, team);
    of_chunk.max_count = std::min(options.max_count, staged_chunk(staged, collective, options, team));
    if (of_chunk.max_count < options.max_count) choice = choose(world, collective, of_chunk, team);
    if (options.blocks > 0) choice.blocks = options.blocks;
    if (options.blocks > 0) choice.blocks_source = OptionSource::kCaller;
    return choice;
  }
  return {algorithm_named(collective, options.algorithm).info.name, options.blocks, OptionSource::kCaller,
          options.blocks > 0 ? OptionSource::kCaller : OptionSource::kRule};
}

}  // namespace tandem
