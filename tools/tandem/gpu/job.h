#pragma once
/// A collective's run, bench or sweep on the GPUs of this machine: from the arguments to the rows of the results.

#include <functional>
#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "tandem/advanced/recording.h"
#include "tandem/timeline.h"
#include "tools/tandem/gpu/measure/collective_turns.h"
#include "tools/tandem/options/arguments.h"
#include "tools/tandem/run/job_place.h"

namespace tandem::cli {

struct GpuJob : JobPlace {
  bool early_launch = true;
  Size heap_bytes = 0;  ///< of each PE
  GpuMethod method;
  bool record = false;  ///< makes a timeline of one call, behind what is measured
  std::vector<CollectiveRun> runs;
  std::vector<Size> sizes;  ///< bytes, ascending
  std::shared_ptr<NcclLibrary> nccl;

  Size largest() const { return sizes.back(); }
  /// "NVIDIA H200 x2".
  std::string machine() const;
};

/// Throws InvalidArgument and Unsupported: options that do not fit together, no GPU, an operator, no NCCL.
GpuJob make_gpu_job(const Arguments& arguments, const std::vector<std::string>& subjects, std::vector<Size> sizes);

/// Calls `program` on every PE of this process. Rethrows the first error of any PE.
void run_worlds(const GpuJob& job, const std::function<void(World&, Shared&, NcclPeer*)>& program);

/// Calls `program` on every PE of this process, with what it needs to measure, and then `on_timeline` where the job
/// records. Rethrows the first error of any PE.
void run_job(const GpuJob& job, const std::function<void(World&, CollectiveTurns&)>& program,
             const std::function<void(const trace::Timeline&, const RecordingInfo&)>& on_timeline = nullptr);

/// The object that results are kept in, its `rows` still empty: machine, date, command, versions.
nlohmann::ordered_json result_head(const GpuJob& job, const Arguments& arguments);
/// One of its rows.
nlohmann::ordered_json result_row(const GpuJob& job, const CollectiveRun& run, const GpuSize& size, const GpuRow& row);

}  // namespace tandem::cli
