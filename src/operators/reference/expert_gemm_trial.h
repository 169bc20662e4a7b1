#pragma once
/// One use of the products of a layer with experts with known results: its buffers, its calls, and their comparison.
///
/// Every element is exact, except behind gated activations, whose results have the errors of their functions.

#include <memory>

#include "collectives/reference/experts_runs.h"
#include "tandem/layer/expert_gemms.h"

namespace tandem::ops {

class ExpertGemmTrial {
 public:
  virtual ~ExpertGemmTrial() = default;
  /// The calls, which `errors` checks once the stream is synchronised.
  virtual void route(Stream& stream) = 0;
  virtual void dispatch_gemm(Stream& stream) = 0;
  virtual void gemm_combine(Stream& stream) = 0;
  virtual kernels::ExpertErrors errors() = 0;
};

/// Makes the buffers of a trial with a plan. In a phantom simulation it has choices, but no values and no expectation.
/// gemm_combine reads what dispatch_gemm left, or zeros, which `errors` expects.
///
/// `other` is a trial with the same choices, whose routing, weights and memory between rows and results this one uses.
/// The first of them makes the routing. Each overwrites the dispatched rows of the one before.
std::unique_ptr<ExpertGemmTrial> make_expert_gemm_trial(World& world, ExpertGemmPlan& plan,
                                                        const kernels::ExpertInput& input,
                                                        const ExpertGemmTrial* other = nullptr);

/// Routings, and calls that use them, one behind the other in a stream.
struct ExpertGemmRuns {
  ExpertGemmOptions options;
  std::vector<kernels::ExpertRound> rounds;  ///< each with its calls of dispatch_gemm, and then of gemm_combine
  kernels::ExpertInput input;                ///< of all rounds, besides routing, tokens and seed
  bool combines = true;                      ///< whether gemm_combine follows
};
/// Makes a plan, runs it in `main` and returns the first error of this PE's results, or "". All PEs call it.
std::string wrong_of_expert_gemms(World& world, Stream& main, const ExpertGemmRuns& runs);

}  // namespace tandem::ops
