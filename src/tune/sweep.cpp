#include "tune/sweep.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <tuple>

namespace tandem::tune {
namespace {

bool ends_with(const std::string& text, const std::string& end) {
  return text.size() >= end.size() && text.compare(text.size() - end.size(), end.size(), end) == 0;
}

bool sends_lines(const std::string& algorithm) { return ends_with(algorithm, "ll128"); }
bool sends_packets(const std::string& algorithm) { return ends_with("_" + algorithm, "_ll"); }

/// Returns the fastest. Among those within 1 % of it, it returns the one with the fewest blocks, which leaves SMs free.
const Measured& best_of(const std::vector<Measured>& all) {
  const auto quickest =
      std::min_element(all.begin(), all.end(), [](const auto& a, const auto& b) { return a.us < b.us; });
  constexpr double equal = 1.01;
  const auto key = [&](const Measured& one) {
    return one.us <= equal * quickest->us ? std::pair(one.blocks, one.us) : std::pair(1 << 30, one.us);
  };
  return *std::min_element(all.begin(), all.end(), [&](const auto& a, const auto& b) { return key(a) < key(b); });
}

constexpr Size kMib = Size{1} << 20;

/// Above these sizes packets, which double the bytes, and LL128 lines, which need a buffer, were never the fastest.
Size most_bytes(const std::string& algorithm) {
  return sends_packets(algorithm) ? kMib : sends_lines(algorithm) ? 32 * kMib : kAnySize;
}

bool is_by_copy_engine(const std::string& algorithm) { return algorithm.rfind("copy_engine", 0) == 0; }

std::vector<int> blocks_to_try(const std::string& algorithm) {
  if (is_by_copy_engine(algorithm)) return {0, 16};  // for the copies and sums within the GPU
  if (algorithm == "grouped") return {0};
  if (sends_packets(algorithm)) return {1, 2, 4, 8, 16, 32};
  return {1, 2, 4, 8, 16, 32, 64, 128};
}

/// The ratio to the best time at the previous size up to which an algorithm stays in the sweep.
double most_ratio(Size bytes) {
  return bytes <= 4 * kMib ? 3 : bytes <= 16 * kMib ? 2 : bytes <= 64 * kMib ? 1.5 : 1.3;
}

/// The largest factor by which the best time can grow from a size to a larger one: repeating the smaller call takes no
/// longer. An algorithm that took longer than that at the smaller size is not the best now. The factor 1.5 allows for
/// noise.
double most_growth(Size before, Size bytes) {
  constexpr double noise = 1.5;
  return noise * static_cast<double>(bytes) / static_cast<double>(std::max<Size>(1, before));
}

}  // namespace

std::vector<Candidate> candidates(Collective collective, bool one_node, const std::string& only_algorithm) {
  std::vector<Candidate> all;
  for (const AlgorithmInfo& info : collective_algorithms()) {
    if (info.collective != collective || (info.one_node_only && !one_node)) continue;
    if (!only_algorithm.empty() && info.name != only_algorithm) continue;
    for (const int blocks : blocks_to_try(info.name)) all.push_back({info.name, blocks, most_bytes(info.name)});
  }
  return all;
}

std::vector<Candidate> Contest::at(Size bytes) const {
  const Size before = measured_.empty() ? 0 : measured_.back().bytes;
  double best = 0;
  for (const Measured& one : measured_)
    if (one.bytes == before && (best == 0 || one.us < best)) best = one.us;
  std::vector<Candidate> left;
  for (const Candidate& candidate : candidates_) {
    if (bytes > candidate.most_bytes) continue;
    const auto is_it = [&](const Measured& one) {
      return one.algorithm == candidate.algorithm && one.blocks == candidate.blocks;
    };
    const auto last = std::find_if(measured_.rbegin(), measured_.rend(), is_it);
    const bool was_before = last != measured_.rend() && last->bytes == before;
    if (bytes <= kMib) {
      const bool is_lost = last != measured_.rend() && last->us > most_growth(before, bytes) * best;
      if (!is_lost) left.push_back(candidate);
    } else {
      const bool is_lost = was_before ? last->us > most_ratio(bytes) * best : before > kMib;
      if (!is_lost || is_by_copy_engine(candidate.algorithm)) left.push_back(candidate);
    }
  }
  return left;
}

void Contest::add(Size bytes, const std::vector<Measured>& measured) {
  for (Measured one : measured) {
    one.bytes = bytes;
    measured_.push_back(one);
  }
}

Group with_choices(Group group, const std::vector<Measured>& measured) {
  std::map<Size, std::vector<Measured>> by_size;
  for (const Measured& one : measured) by_size[one.bytes].push_back(one);
  constexpr double noise = 1.01;
  group.sizes.clear();
  for (const auto& [bytes, all] : by_size) {
    Measured winner = best_of(all);
    if (!group.sizes.empty())
      for (const Measured& one : all)
        if (one.algorithm == group.sizes.back().algorithm && one.blocks == group.sizes.back().blocks &&
            one.blocks <= winner.blocks && one.us <= noise * winner.us)
          winner = one;
    if (!group.sizes.empty()) {
      SizeChoice& before = group.sizes.back();
      before.up_to_bytes =
          static_cast<Size>(std::sqrt(static_cast<double>(*before.measured_bytes) * static_cast<double>(bytes)));
    }
    group.sizes.push_back({.algorithm = winner.algorithm,
                           .blocks = winner.blocks,
                           .measured_bytes = bytes,
                           .us = std::round(winner.us * 100) / 100});
  }
  return group;
}

void put(SelectionTable& table, const Group& group) {
  const auto key = [](const Group& g) {
    return std::tuple(g.layer, g.collective, !g.one_node, g.pes, g.element_bytes);
  };
  const auto same = [&](const Group& other) { return key(other) == key(group); };
  const auto found = std::find_if(table.groups.begin(), table.groups.end(), same);
  if (found != table.groups.end())
    *found = group;
  else
    table.groups.push_back(group);
  std::stable_sort(table.groups.begin(), table.groups.end(),
                   [&](const Group& a, const Group& b) { return key(a) < key(b); });
}

}  // namespace tandem::tune
