#pragma once
/// Cases of merge_heads: types, bases, sizes and blocks.

#include <fmt/format.h>

#include <string>
#include <vector>

#include "collectives/reference/heads_runs.h"
#include "support/pairwise.h"

namespace tandem::test {

inline std::string describe(const kernels::HeadsRuns& runs, int pes) {
  const MergeHeadsOptions& o = runs.options;
  return fmt::format("{} {} x {} base {}{} blocks {}{} on {} PEs", name(o.type), o.heads, o.head_size,
                     o.base == LseBase::kE ? "e" : "2", o.own_heads ? " own heads" : "", o.blocks,
                     runs.in_place ? " in place" : "", pes);
}

/// Every pair of values of the options, with batches of 0, 1 and more. Heads may be fewer than PEs.
inline std::vector<kernels::HeadsRuns> heads_cases() {
  constexpr DType kTypes[] = {DType::kBF16, DType::kF32, DType::kF16};
  constexpr Size kHeads[] = {8, 1, 7, 3};
  constexpr Size kSizes[] = {128, 512, 1, 77, 500};
  constexpr int kBlocks[] = {0, 1, 3};
  const Pairwise pairwise({3, 4, 5, 2, 2, 3, 2}, [](std::size_t, int, std::size_t, int) { return true; });
  std::vector<kernels::HeadsRuns> list;
  for (const std::vector<int>& row : pairwise.rows()) {
    kernels::HeadsRuns runs;
    runs.options.type = kTypes[row[0]];
    runs.options.heads = kHeads[row[1]];
    runs.options.head_size = kSizes[row[2]];
    runs.options.base = row[3] == 0 ? LseBase::kE : LseBase::kTwo;
    runs.options.own_heads = row[4] == 0;
    runs.options.blocks = kBlocks[row[5]];
    runs.options.max_batch = 5;
    runs.batches = {5, 1, 0, 4, 5, 5};
    runs.in_place = row[6] == 1;
    list.push_back(runs);
  }
  return list;
}

}  // namespace tandem::test
