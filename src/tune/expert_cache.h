#pragma once
/// Measured forms of the calls of layers with experts, in the cache file of operators.

#include <optional>
#include <string>
#include <vector>

#include "tandem/layer/expert_gemms.h"

namespace tandem::tune {

/// A call and everything that its time depends on. Other PEs, another machine or another version have another key.
struct ExpertKey {
  std::string op;             ///< "dispatch", "combine", "dispatch_gemm" or "gemm_combine"
  ExpertGemmOptions problem;  ///< the products have their sizes, the others have 0 and defaults
  int pes = 1;
  std::string machine;  ///< World::machine().name
};
/// Returns the key of a call in this world. Choices in `options` do not count.
ExpertKey expert_key(const World& world, const std::string& op, const ExpertGemmOptions& options);

/// A form of a call, and its time.
struct ExpertTime {
  std::string algorithm;  ///< a transport for dispatch and combine, a form for the products
  int blocks = 0;         ///< blocks, or SMs beside a GEMM; 0: those that the plan chooses
  int column_chunks = 0;  ///< of the overlapped gemm_combine
  double us = 0;          ///< of the slowest PE
};

/// Adds the times of a call to a cache file, or replaces those with the same key. It throws as `store_tuned` does.
void store_expert_times(const std::string& file, const ExpertKey& key, const std::vector<ExpertTime>& times);

/// The times of some calls of one plan.
struct ExpertTimes {
  std::string file;                            ///< empty: no call has an entry
  std::vector<std::vector<ExpertTime>> times;  ///< of each call; empty: there is no entry
};
/// Returns the entries of the file that kOperatorCacheVariable names, if all PEs find the same ones. All PEs call it.
ExpertTimes find_expert_times(World& world, const std::vector<std::string>& ops, const ExpertGemmOptions& options);

/// Returns the algorithm and the blocks with the least sum of times over the calls that have an entry. All these calls
/// have measured them. Returns nothing if there are none.
std::optional<ExpertTime> fastest_together(const ExpertTimes& found);

}  // namespace tandem::tune
