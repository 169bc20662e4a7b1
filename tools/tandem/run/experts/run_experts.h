#pragma once
/// `tandem run` of dispatch and combine of experts.

#include "collectives/reference/expert_trial.h"
#include "tandem/layer/experts.h"
#include "tools/tandem/host/host_job.h"
#include "tools/tandem/main/setup.h"
#include "tools/tandem/options/progress.h"
#include "tools/tandem/run/pictures.h"
#include "tools/tandem/run/result.h"
#include "tools/tandem/run/run_options.h"

namespace tandem::cli {

inline constexpr const char* kDispatchName = "dispatch";
inline constexpr const char* kCombineName = "combine";

/// All properties of a run. The tokens of a PE are input.tokens.
struct ExpertsRun {
  ExpertOptions options;
  kernels::ExpertInput input;
  bool combines = false;  ///< combine with a routing made before, else route and dispatch
  int warmups = 1;
  int iterations = 1;
  bool explain = false;

  const char* op() const { return combines ? kCombineName : kDispatchName; }
  void set_tokens(Size tokens) { input.tokens = options.max_tokens = tokens; }
};

/// Throws InvalidArgument for options that are invalid or do not apply.
ExpertsRun make_experts_run(bool combines, const Arguments& arguments);
ExpertsRun make_experts_run(bool combines, const RunOptions& options);
/// Returns the parts of a Progress for `run_experts`: its calls.
inline int parts_of(const ExpertsRun& run) { return run.warmups + run.iterations; }
/// Runs it in the simulator and checks every element on every PE. Records if `pictures` needs it.
Result run_experts(const ExpertsRun& run, Setup setup, Pictures& pictures, Progress& progress);
/// Runs it on CPUs and checks every element on every PE. The time is the slowest PE's.
Result run_experts_on_host(const ExpertsRun& run, const HostJob& job);

}  // namespace tandem::cli
