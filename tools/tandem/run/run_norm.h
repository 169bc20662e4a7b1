#pragma once
/// `tandem run` of all_reduce_norm.

#include "tandem/layer/all_reduce_norm.h"
#include "tools/tandem/host/host_job.h"
#include "tools/tandem/main/setup.h"
#include "tools/tandem/options/progress.h"
#include "tools/tandem/run/pictures.h"
#include "tools/tandem/run/result.h"
#include "tools/tandem/run/run_options.h"

namespace tandem::cli {

inline constexpr const char* kNormName = "all_reduce_norm";

/// All properties of a run; options.max_rows is the number of rows.
struct NormRun {
  AllReduceNormOptions options;
  int warmups = 1;
  int iterations = 1;
  bool explain = false;
};

/// Throws InvalidArgument for options that are invalid or do not apply.
NormRun make_norm_run(const Arguments& arguments);
NormRun make_norm_run(const RunOptions& options);
/// Returns the parts of a Progress for `run_norm`: its calls.
inline int parts_of(const NormRun& run) { return run.warmups + run.iterations; }
/// Runs it in the simulator and checks every element on every PE. Records if `pictures` needs it.
Result run_norm(const NormRun& run, Setup setup, Pictures& pictures, Progress& progress);
/// Runs it on CPUs and checks every element on every PE. The time is the slowest PE's.
Result run_norm_on_host(const NormRun& run, const HostJob& job);

}  // namespace tandem::cli
