#pragma once
/// Cases of experts: types, forms of rows, layouts, sizes, routings.

#include <fmt/format.h>

#include <string>
#include <vector>

#include "collectives/reference/experts_runs.h"
#include "support/pairwise.h"

namespace tandem::test {

inline std::string describe(const kernels::ExpertRuns& runs, int pes) {
  const ExpertOptions& o = runs.options;
  return fmt::format("{} {} {}{} {} hidden {} top {} tp {} align {} blocks {} batches {}{}{}{}{} on {} PEs",
                     name(o.type), name(o.wire), o.scales_by_group ? "by group " : "", name(o.layout),
                     name(o.transport), o.hidden, o.top_k, o.tp_size, o.align, o.blocks, o.batches,
                     runs.input.long_ids ? " i64" : "", runs.input.weights ? " weights" : "",
                     runs.input.tokens_on_device ? " device tokens" : "", runs.input.add ? " add" : "", pes);
}

/// Every pair of values of the options on so many PEs, each with rounds whose numbers of tokens change. Routings are
/// used again. Rows have one piece, several, and a part of one. With batches, calls are halves. All PEs share the
/// columns of each expert, or four of eight PEs do.
inline std::vector<kernels::ExpertRuns> expert_cases(int pes) {
  constexpr Size kHidden[] = {128, 2500, 1, 1792};
  constexpr int kTopK[] = {2, 8, 1, 9};
  constexpr int kBlocks[] = {0, 1, 3};
  const int kTpSizes[] = {1, pes == 8 ? 4 : pes};
  const Pairwise pairwise({3, 3, 4, 4, 2, 3, 2, 2, 2, 3, 3, 2},
                          [](std::size_t, int, std::size_t, int) { return true; });
  std::vector<kernels::ExpertRuns> list;
  for (const std::vector<int>& row : pairwise.rows()) {
    kernels::ExpertRuns runs;
    ExpertOptions& o = runs.options;
    o.wire = static_cast<ExpertWire>(row[0]);
    o.layout = static_cast<ExpertLayout>(row[1]);
    o.hidden = kHidden[row[2]];
    o.top_k = kTopK[row[3]];
    o.type = row[4] == 0 ? DType::kBF16 : DType::kF16;
    o.blocks = kBlocks[row[5]];
    o.max_tokens = 5;
    o.experts = pes * (1 + row[3]);
    o.tp_size = kTpSizes[row[11]];
    if (o.layout == ExpertLayout::kSorted && row[4] == 0) o.align = 8;
    if (o.layout == ExpertLayout::kByExpert) o.most_rows = pes * o.max_tokens * o.top_k;  // an expert twice in a token
    o.transport = static_cast<ExpertTransport>(1 + row[9]);
    o.batches = row[10];
    if (o.transport == ExpertTransport::kFused) o.batches = 0;
    o.scales_by_group = o.wire != ExpertWire::kType && row[7] == 1;
    runs.input.long_ids = row[6] == 1;
    runs.input.weights = row[7] == 0;
    runs.input.tokens_on_device = row[8] == 1;
    runs.input.add = row[6] == 1;
    runs.rounds = {{"random", 5, 1}, {"ragged", 5, 2},   {"one", 1, 1},    {"none", 4, 1},
                   {"zipf:1", 3, 1}, {"balanced", 0, 1}, {"ragged", 4, 3}, {"balanced", 5, 1}};
    list.push_back(runs);
  }
  return list;
}

}  // namespace tandem::test
