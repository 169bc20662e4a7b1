#include "controls.h"

#include <fmt/format.h>

#include <algorithm>
#include <sstream>

#include "tandem/error.h"

namespace tandem::c {

namespace {

/// The collectives of the C API.
constexpr std::array kNamed{Collective::kAllReduce, Collective::kAllGather, Collective::kReduceScatter,
                            Collective::kAllToAll,  Collective::kBroadcast, Collective::kReduce,
                            Collective::kGather,    Collective::kScatter};

std::string trimmed(const std::string& text) {
  const auto begin = text.find_first_not_of(' ');
  return begin == std::string::npos ? "" : text.substr(begin, text.find_last_not_of(' ') + 1 - begin);
}

void add(std::string& list, const std::string& one) { list += (list.empty() ? "" : ", ") + one; }

Collective collective_of(const std::string& text) {
  std::string names;
  for (const Collective collective : kNamed) {
    if (text == name(collective)) return collective;
    add(names, name(collective));
  }
  throw InvalidArgument(fmt::format("algorithms: no collective '{}'; there are {}", text, names));
}

void check_algorithm(Collective collective, const std::string& algorithm) {
  std::string names;
  for (const AlgorithmInfo& info : collective_algorithms()) {
    if (info.collective != collective) continue;
    if (info.name == algorithm) return;
    add(names, info.name);
  }
  throw InvalidArgument(fmt::format("algorithms: {} has no '{}'; it has {}", name(collective), algorithm, names));
}

}  // namespace

std::string Controls::text() const {
  std::string all = max_blocks == 0 ? "" : fmt::format("max_blocks {}", max_blocks);
  for (const Collective collective : kNamed)
    if (const std::string& algorithm = algorithms[static_cast<std::size_t>(collective)]; !algorithm.empty())
      add(all, fmt::format("{}={}", name(collective), algorithm));
  return all;
}

Controls parse_controls(int max_blocks, const char* algorithms) {
  Controls controls;
  if (max_blocks < 0)
    throw InvalidArgument(
        fmt::format("max_blocks: {} given, allowed are 1 to the GPU's SMs, or 0 for as many as suit", max_blocks));
  controls.max_blocks = max_blocks;
  if (algorithms == nullptr || trimmed(algorithms).empty()) return controls;
  std::istringstream list(algorithms);
  for (std::string item; std::getline(list, item, ',');) {
    const auto equals = item.find('=');
    if (equals == std::string::npos)
      throw InvalidArgument(fmt::format(
          "algorithms: '{}' given, allowed is COLLECTIVE=ALGORITHM, several of them separated by commas", item));
    const Collective collective = collective_of(trimmed(item.substr(0, equals)));
    const std::string algorithm = trimmed(item.substr(equals + 1));
    check_algorithm(collective, algorithm);
    std::string& place = controls.algorithms[static_cast<std::size_t>(collective)];
    if (!place.empty())
      throw InvalidArgument(
          fmt::format("algorithms: {} and {} given for {}, allowed is one", place, algorithm, name(collective)));
    place = algorithm;
  }
  return controls;
}

void check_controls(const Controls& controls, const Machine& machine) {
  if (controls.max_blocks > machine.gpu.sm_count)
    throw InvalidArgument(
        fmt::format("max_blocks: {} given, allowed are 1 to {}, the SMs of {}, or 0 for as many as suit",
                    controls.max_blocks, machine.gpu.sm_count, machine.name));
}

}  // namespace tandem::c
