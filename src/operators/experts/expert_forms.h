#pragma once
/// The choices that a plan of expert products makes: forms, SMs beside the GEMMs, chunks.

#include "operators/experts/dispatch_gemm.h"

namespace tandem::ops {

/// Complete options, and who chose what.
struct ExpertChoices {
  ExpertGemmOptions options;
  EarlyExperts early;
  std::vector<OptionChoice> choices;
};

/// Completes options that are checked. All PEs call it.
ExpertChoices choose_expert_forms(World& world, const ExpertGemmOptions& given);

}  // namespace tandem::ops
