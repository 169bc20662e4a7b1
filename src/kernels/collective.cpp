#include "kernels/collective.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <limits>

#include "kernels/checked_plan.h"
#include "tandem/error.h"

namespace tandem {

namespace kernels {

namespace {

/// What a collective is called, and how many times `count` its buffers hold on a PE that has one.
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

const Traits& traits(Collective collective) { return kTraits.at(static_cast<std::size_t>(collective)); }

constexpr Size kAnySize = std::numeric_limits<Size>::max();

/// Which algorithm is the default up to which size (bytes of a PE's larger buffer): the first row that fits.
/// Collectives without a row take their first algorithm that the team can run.
struct Preference {
  Collective collective;
  bool one_node;
  Size up_to_bytes;         ///< whatever the team, or ...
  Size up_to_bytes_per_pe;  ///< ... for each PE of the team
  const char* algorithm;
};
constexpr Preference kPreferences[] = {
    // Packets save the flag's trip, but double the bytes; one shot saves a trip, but reads everything from everybody.
    {Collective::kAllReduce, true, Size{64} << 10, 0, "one_shot_ll"},
    {Collective::kAllReduce, true, Size{256} << 10, 0, "one_shot"},
    {Collective::kAllReduce, true, kAnySize, 0, "two_shot"},
    // Between nodes the number of trips counts first, and rings have two a PE; then the bytes through each NIC.
    {Collective::kAllReduce, false, Size{256} << 10, 0, "recursive_doubling"},
    {Collective::kAllReduce, false, 0, Size{16} << 10, "tree"},
    {Collective::kAllReduce, false, kAnySize, 0, "multi_ring"},
    {Collective::kReduceScatter, false, kAnySize, 0, "two_level"},
    // What only moves: packets while latency counts; copy engines where they outrun the SMs' stores.
    {Collective::kAllGather, true, Size{64} << 10, 0, "ll"},
    {Collective::kAllGather, true, Size{64} << 20, 0, "push"},
    {Collective::kAllGather, true, kAnySize, 0, "copy_engine_push"},
    {Collective::kAllGather, false, Size{16} << 10, 0, "two_level_ll"},
    {Collective::kAllGather, false, kAnySize, 0, "two_level"},
    {Collective::kAllToAll, true, Size{64} << 10, 0, "ll"},
    {Collective::kAllToAll, true, Size{64} << 20, 0, "push"},
    {Collective::kAllToAll, true, kAnySize, 0, "copy_engine"},
    {Collective::kBroadcast, true, Size{256} << 10, 0, "direct"},
    {Collective::kBroadcast, true, kAnySize, 0, "chain"},
    {Collective::kBroadcast, false, Size{256} << 10, 0, "tree"},
    {Collective::kBroadcast, false, Size{1} << 20, 0, "chain"},
    {Collective::kBroadcast, false, kAnySize, 0, "scatter_all_gather"},
};

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

const Algorithm& choose(Collective collective, const CollectiveOptions& options, const Team& team) {
  const Size bytes = bytes_of(collective, options, team);
  for (const Preference& row : kPreferences) {
    if (row.collective != collective || row.one_node != team.one_node()) continue;
    if (bytes > row.up_to_bytes && bytes > row.up_to_bytes_per_pe * team.size) continue;
    const Algorithm* const preferred = find(collective, row.algorithm);
    if (preferred != nullptr && can_run(*preferred, team)) return *preferred;
  }
  for (const Algorithm& algorithm : algorithms_of(collective))
    if (can_run(algorithm, team)) return algorithm;
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

void check(Collective collective, const CollectiveOptions& options, const Team& team) {
  const char* const what = name(collective);
  if (options.max_count < 0)
    throw InvalidArgument(fmt::format("max_count: {} given to {}, must not be negative", options.max_count, what));
  if (options.root < 0 || options.root >= team.size)
    throw InvalidArgument(fmt::format("root: {} given to {}, allowed are 0 to {}", options.root, what, team.size - 1));
  if (options.blocks < 0)
    throw InvalidArgument(fmt::format("blocks: {} given to {}, must not be negative", options.blocks, what));
  if (options.threads < 32 || options.threads > 1024 || options.threads % 32 != 0)
    throw InvalidArgument(
        fmt::format("threads: {} given to {}, allowed are multiples of 32 from 32 to 1024", options.threads, what));
}

}  // namespace

std::span<const Algorithm> algorithms_of(Collective collective) { return traits(collective).algorithms(); }

void refuse(const AlgorithmInfo& info, const std::string& why) {
  throw Unsupported(fmt::format("{} algorithm '{}' {}", name(info.collective), info.name, why));
}

void check_count(const std::string& collective_and_algorithm, Size count, Size max_count) {
  if (count < 0 || count > max_count)
    throw InvalidArgument(fmt::format("count: {} given to {}, allowed are 0 to {} (max_count)", count,
                                      collective_and_algorithm, max_count));
}

int default_blocks(Size bytes, const Team& team) {
  // One block drives one NIC queue, which nearly fills the NIC; every further block multiplies the messages.
  if (!team.one_node()) return static_cast<int>(std::clamp<Size>(bytes >> 20, 1, team.size > 64 ? 1 : 8));
  // 512 threads move 8 KiB at once. Eight blocks of 1024 threads fill a link with stores, 32 of 512 leave room for the
  // latency of loads; large reductions by loads go on gaining up to 128 (bench/results/h200x2.json).
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

std::unique_ptr<CollectivePlan> make_collective(World& world, Collective collective, const CollectiveOptions& options,
                                                const Team& team) {
  using namespace kernels;
  check(collective, options, team);
  const Algorithm& algorithm =
      options.algorithm.empty() ? choose(collective, options, team) : named(collective, options.algorithm);
  if (!can_run(algorithm, team))
    refuse(
        algorithm.info,
        fmt::format("needs loads and stores between all PEs, which this team of {} nodes does not have", team.nodes()));
  CollectiveOptions complete = options;
  complete.algorithm = algorithm.info.name;
  auto plan = algorithm.make(world, complete, team);
  return world.checks_calls() ? check_calls(world, collective, complete, team, std::move(plan)) : std::move(plan);
}

}  // namespace tandem
