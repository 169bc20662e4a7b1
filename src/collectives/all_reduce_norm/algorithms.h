#pragma once
/// The algorithms of all_reduce_norm with the plans of their kernels.

#include <memory>
#include <string>

#include "tandem/layer/all_reduce_norm.h"

namespace tandem::kernels {

struct RegisteredNorm {
  AllReduceNormAlgorithm about;
  std::unique_ptr<AllReduceNormPlan> (*make)(World& world, const AllReduceNormOptions& options);
};

/// Returns the algorithm of that name. Throws InvalidArgument with the list of names.
const RegisteredNorm& named_norm(const std::string& algorithm);

}  // namespace tandem::kernels
