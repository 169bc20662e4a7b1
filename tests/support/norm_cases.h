#pragma once
/// Cases of all_reduce_norm: patterns, types, algorithms, sizes and places.

#include <fmt/format.h>

#include <string>
#include <vector>

#include "collectives/reference/norm_runs.h"
#include "support/pairwise.h"

namespace tandem::test {

inline constexpr DType kNormTypes[] = {DType::kBF16, DType::kF32, DType::kF16};
inline constexpr Quantisation kQuantisations[] = {Quantisation::kNone, Quantisation::kStatic, Quantisation::kRow,
                                                  Quantisation::kGroup};
inline constexpr Size kHidden[] = {128, 1000, 517, 4096, 16384, 1, 2, 8192};

inline std::string describe(const kernels::NormRuns& runs, int pes) {
  const AllReduceNormOptions& o = runs.options;
  return fmt::format("{} {} hidden {} norm {} quantise {}{}{}{}{}{} places {} fractions {} blocks {} on {} PEs",
                     o.algorithm, name(o.type), o.hidden, name(o.norm), name(o.quantisation),
                     o.residual ? " residual" : "", o.bias ? " bias" : "", o.norm_bias ? " norm_bias" : "",
                     o.sum ? " sum" : "", o.sharded_residual ? " sharded" : "", static_cast<int>(runs.places),
                     runs.fractions, o.blocks, pes);
}

/// Every pair of values of the options, with rows 0, 1, odd, and more than blocks.
inline std::vector<kernels::NormRuns> norm_cases() {
  enum : std::size_t {
    kAlgorithm,
    kType,
    kNorm,
    kQuantise,
    kHiddenSize,
    kResidual,
    kBias,
    kNormBias,
    kSum,
    kPlace,
    kFractions,
    kBlocks,
    kFactors
  };
  const auto& algorithms = all_reduce_norm_algorithms();
  const auto allowed = [&](std::size_t i, int a, std::size_t j, int b) {
    if (i == kNorm && j == kNormBias) return a != 0 || b == 0;
    return !(i == kAlgorithm && j == kResidual) || b < 2 || algorithms[static_cast<std::size_t>(a)].two_shots;
  };
  const Pairwise pairwise({static_cast<int>(algorithms.size()), 3, 3, 4, 8, 3, 2, 2, 2, 3, 2, 2}, allowed);
  std::vector<kernels::NormRuns> list;
  for (const std::vector<int>& row : pairwise.rows()) {
    kernels::NormRuns runs;
    AllReduceNormOptions& o = runs.options;
    const AllReduceNormAlgorithm& algorithm = algorithms[static_cast<std::size_t>(row[kAlgorithm])];
    o.algorithm = algorithm.name;
    o.type = kNormTypes[row[kType]];
    o.norm = static_cast<Norm>(row[kNorm]);
    o.quantisation = kQuantisations[row[kQuantise]];
    if (o.quantisation == Quantisation::kStatic) o.scale = 0.25;
    o.hidden = kHidden[row[kHiddenSize]];
    o.max_rows = 5;
    o.residual = row[kResidual] > 0;
    o.sharded_residual = row[kResidual] == 2;
    o.bias = row[kBias] == 1;
    o.norm_bias = row[kNormBias] == 1;
    o.sum = row[kSum] == 1;
    constexpr int kForLongestRow = 32;  // as many as its parts
    if (row[kBlocks] == 1) o.blocks = algorithm.splits_rows ? kForLongestRow : 2;
    runs.places = static_cast<kernels::NormPlaces>(row[kPlace]);
    runs.fractions = row[kFractions] == 1;
    runs.rows = {5, 0, 1, 3, 5, 5, 2};
    list.push_back(runs);
  }
  return list;
}

}  // namespace tandem::test
