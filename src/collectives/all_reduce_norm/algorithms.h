#pragma once
/// The algorithms of all_reduce_norm with the plans of their kernels.

#include <memory>
#include <string>

#include "tandem/layer/all_reduce_norm.h"

namespace tandem::kernels {

struct RegisteredNorm {
  AllReduceNormAlgorithm about;
  std::unique_ptr<AllReduceNormPlan> (*make)(World& world, const AllReduceNormOptions& options);
  int blocks_per_sm = 1;  ///< of a GPU

  /// Returns the most blocks of a plan.
  int most_blocks(const Machine& machine) const {
    return machine.gpu.sm_count * (machine.processor == Processor::kGpu ? blocks_per_sm : 1);
  }
};

/// Returns the algorithm of that name. Throws InvalidArgument with the list of names.
const RegisteredNorm& named_norm(const std::string& algorithm);

}  // namespace tandem::kernels
