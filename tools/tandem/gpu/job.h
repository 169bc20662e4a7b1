#pragma once
/// A run, bench or sweep of a collective on this machine's GPUs: from the arguments to the rows of the results.

#include <functional>
#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "tandem/advanced/profile.h"
#include "tandem/timeline.h"
#include "tools/tandem/gpu/measure/collective_benchmark.h"
#include "tools/tandem/options/arguments.h"
#include "tools/tandem/run/job_place.h"

namespace tandem::cli {

/// PEs are threads of this process. If a launcher's variables are set (docs/reference/worlds.md), each process is one
/// PE.
struct GpuJob : JobPlace {
  bool early_launch = true;
  Size heap_bytes = 0;  ///< of each PE
  GpuMethod method;
  bool record = false;  ///< records a timeline of one call after the measurement
  std::vector<CollectiveRun> runs;
  std::vector<Size> sizes;  ///< bytes, ascending
  std::shared_ptr<NcclLibrary> nccl;

  Size largest() const { return sizes.back(); }
  /// "NVIDIA H200 x2".
  std::string machine() const;
};

/// Throws InvalidArgument and Unsupported: inconsistent options, no GPU, an operator, no NCCL.
GpuJob make_gpu_job(const Arguments& arguments, const std::vector<std::string>& subjects, std::vector<Size> sizes);

/// Calls `program` on every PE of this process. Rethrows the first error of any PE.
void run_worlds(const GpuJob& job, const std::function<void(World&, Shared&, NcclPeer*)>& program);

/// Calls `program` on every PE of this process, with all it needs to measure. If the job records, it then calls
/// `on_timeline`. Rethrows the first error of any PE.
void run_job(const GpuJob& job, const std::function<void(World&, CollectiveBenchmark&)>& program,
             const std::function<void(const trace::Timeline&, const ProfileInfo&)>& on_timeline = nullptr);

/// Returns the JSON object of results with empty `rows`: machine, date, command, versions.
nlohmann::ordered_json result_head(const GpuJob& job, const Arguments& arguments);
/// Returns one of its rows.
nlohmann::ordered_json result_row(const GpuJob& job, const CollectiveRun& run, const GpuSize& size, const GpuRow& row);

}  // namespace tandem::cli
