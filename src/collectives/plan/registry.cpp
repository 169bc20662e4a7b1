// The collectives with their algorithms, and the sizes of their buffers.
#include <fmt/format.h>

#include <array>

#include "collectives/plan/collective.h"
#include "tandem/error.h"

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

}  // namespace

std::span<const Algorithm> algorithms_of(Collective collective) { return traits(collective).algorithms(); }

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

}  // namespace tandem
