// The collectives: their properties and their algorithms, a row for each.
#include <fmt/format.h>

#include <array>

#include "collectives/plan/collective.h"
#include "tandem/advanced/collective_traits.h"
#include "tandem/error.h"

namespace tandem {

namespace kernels {

namespace {

using Shape = CollectiveShape;
using Source = CollectiveSource;

// The sources of element `i` of the output of PE `pe`.
constexpr Source from_all(const Shape& call, int /*pe*/, Size i) { return {0, call.pes, i}; }
constexpr Source from_all_own_part(const Shape& call, int pe, Size i) { return {0, call.pes, pe * call.count + i}; }
constexpr Source from_each(const Shape& call, int /*pe*/, Size i) {
  return {static_cast<int>(i / call.count), 1, i % call.count};
}
constexpr Source from_each_own_part(const Shape& call, int pe, Size i) {
  return {static_cast<int>(i / call.count), 1, pe * call.count + i % call.count};
}
constexpr Source from_root(const Shape& call, int /*pe*/, Size i) { return {call.root, 1, i}; }
constexpr Source from_root_own_part(const Shape& call, int pe, Size i) { return {call.root, 1, pe * call.count + i}; }
constexpr Source from_previous(const Shape& call, int pe, Size i) { return {(pe + call.pes - 1) % call.pes, 1, i}; }
constexpr Source from_partner(const Shape& call, int pe, Size i) { return {(pe ^ 1) < call.pes ? pe ^ 1 : pe, 1, i}; }

struct Entry {
  CollectiveTraits traits;
  std::span<const Algorithm> (*algorithms)();
};

constexpr CollectiveBuffer kPart{false, false}, kWhole{true, false}, kRootsPart{false, true}, kRootsWhole{true, true};

using C = Collective;

/// In the order of the enumeration. Columns: collective, name, whether it reduces, input, output, whether a call may be
/// in place, sources, algorithms.
constexpr Entry kEntries[] = {
    {{C::kAllReduce, "all_reduce", true, kPart, kPart, true, from_all}, all_reduce_algorithms},
    {{C::kAllGather, "all_gather", false, kPart, kWhole, true, from_each}, all_gather_algorithms},
    {{C::kReduceScatter, "reduce_scatter", true, kWhole, kPart, true, from_all_own_part}, reduce_scatter_algorithms},
    {{C::kAllToAll, "all_to_all", false, kWhole, kWhole, false, from_each_own_part}, all_to_all_algorithms},
    {{C::kBroadcast, "broadcast", false, kRootsPart, kPart, true, from_root}, broadcast_algorithms},
    {{C::kReduce, "reduce", true, kPart, kRootsPart, true, from_all}, reduce_algorithms},
    {{C::kGather, "gather", false, kPart, kRootsWhole, true, from_each}, gather_algorithms},
    {{C::kScatter, "scatter", false, kRootsWhole, kPart, true, from_root_own_part}, scatter_algorithms},
    {{C::kSendRecv, "send_recv", false, kPart, kPart, false, from_previous}, send_recv_algorithms},
    {{C::kExchange, "exchange", false, kPart, kPart, false, from_partner}, exchange_algorithms},
};

static_assert(std::size(kEntries) == kCollectives, "a row for each collective");

/// The collectives of the table. Compiles only if their order is that of the enumeration.
constexpr auto kAll = [] {
  std::array<Collective, std::size(kEntries)> collectives{};
  for (std::size_t i = 0; i < collectives.size(); ++i) {
    collectives[i] = kEntries[i].traits.collective;
    if (collectives[i] != static_cast<Collective>(i))
      throw InvalidArgument("kEntries: not in the order of the enumeration");
  }
  return collectives;
}();

const Entry& entry(Collective collective) {
  const auto number = static_cast<std::size_t>(collective);
  if (number >= std::size(kEntries))
    throw InvalidArgument(fmt::format("collective: no number {}, there are {}", number, std::size(kEntries)));
  return kEntries[number];
}

}  // namespace

std::span<const Algorithm> algorithms_of(Collective collective) { return entry(collective).algorithms(); }

const Algorithm* find_algorithm(Collective collective, const std::string& algorithm) {
  for (const Algorithm& candidate : algorithms_of(collective))
    if (candidate.info.name == algorithm) return &candidate;
  return nullptr;
}

const Algorithm& algorithm_named(Collective collective, const std::string& algorithm) {
  const Algorithm* const found = find_algorithm(collective, algorithm);
  if (found != nullptr) return *found;
  std::string names;
  for (const Algorithm& candidate : algorithms_of(collective))
    names += (names.empty() ? "" : ", ") + candidate.info.name;
  throw InvalidArgument(fmt::format("algorithm: {} has no '{}'; it has {}", name(collective), algorithm, names));
}

}  // namespace kernels

std::span<const Collective> all_collectives() { return kernels::kAll; }

const CollectiveTraits& traits(Collective collective) { return kernels::entry(collective).traits; }

const char* name(Collective collective) { return traits(collective).name; }

Collective parse_collective(const std::string& text) {
  std::string names;
  for (const Collective collective : all_collectives()) {
    if (text == name(collective)) return collective;
    names += fmt::format("{}{}", names.empty() ? "" : ", ", name(collective));
  }
  throw InvalidArgument(fmt::format("collective: no '{}'; there are {}", text, names));
}

bool reduces(Collective collective) { return traits(collective).reduces; }

namespace {

Size elements(const CollectiveBuffer& buffer, Size count, int pes, int pe, int root) {
  return buffer.at_root && pe != root ? 0 : buffer.is_whole ? count * pes : count;
}

}  // namespace

Size input_elements(Collective collective, Size count, int pes, int pe, int root) {
  return elements(traits(collective).in, count, pes, pe, root);
}

Size output_elements(Collective collective, Size count, int pes, int pe, int root) {
  return elements(traits(collective).out, count, pes, pe, root);
}

const std::vector<AlgorithmInfo>& collective_algorithms() {
  static const std::vector<AlgorithmInfo> all = [] {
    std::vector<AlgorithmInfo> infos;
    for (const Collective collective : all_collectives())
      for (const kernels::Algorithm& algorithm : kernels::algorithms_of(collective)) infos.push_back(algorithm.info);
    return infos;
  }();
  return all;
}

}  // namespace tandem
