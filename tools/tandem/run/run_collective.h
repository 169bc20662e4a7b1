#pragma once
/// `tandem run` of a collective.

#include "tandem/collectives.h"
#include "tools/tandem/data/collective_data.h"
#include "tools/tandem/host/host_job.h"
#include "tools/tandem/main/setup.h"
#include "tools/tandem/options/progress.h"
#include "tools/tandem/run/pictures.h"
#include "tools/tandem/run/result.h"
#include "tools/tandem/run/run_options.h"

namespace tandem::cli {

/// Returns `count` in elements for a size in bytes of a PE's larger buffer, as in nccl-tests. Rounds down.
Size count_of_bytes(Collective collective, Size bytes, int pes, Size element_bytes);
/// Returns the bytes of `count` elements, the inverse.
Size bytes_of_count(Collective collective, Size count, int pes, Size element_bytes);
/// Returns bus bandwidth divided by algorithm bandwidth (nccl-tests, doc/PERFORMANCE.md).
double bus_factor(Collective collective, int pes);

/// All properties of a run except its size.
struct CollectiveRun {
  Collective collective = Collective::kAllReduce;
  CollectiveOptions options;
  bool normal_data = false;
  bool in_place = false;
  int warmups = 1;
  int iterations = 1;
  bool explain = false;
};

/// Throws InvalidArgument for options that are invalid or inconsistent.
CollectiveRun make_collective_run(Collective collective, const Arguments& arguments, int pes);
CollectiveRun make_collective_run(Collective collective, const RunOptions& options, int pes);
/// Returns the wire format, if it is not the type, for the lines of a result.
std::string extras_of(const CollectiveRun& run);
/// The bytes of the larger input and of the larger output of any PE. Symmetric buffers are equal on all PEs.
struct BufferBytes {
  Size in = 0;
  Size out = 0;
};
BufferBytes buffer_bytes(const CollectiveRun& run, Size count, int pes);
/// Throws InvalidArgument for a size, other than 0, in which no element would be left.
void check_size(const CollectiveRun& run, Size bytes, int pes);
/// Returns the parts of a Progress for `run_collective`: its calls.
inline int parts_of(const CollectiveRun& run) { return run.warmups + run.iterations; }
/// Writes the expected duration to standard error if it is minutes. Throws InvalidArgument if this computer has too
/// little memory.
void note_cost(const CollectiveRun& run, const Setup& setup);
/// Runs it for `bytes` (rounded down) on CPUs and checks every element on every PE. The time is the slowest PE's.
Result run_collective_on_host(const CollectiveRun& run, const HostJob& job, Size bytes);
/// Runs it for `bytes` (rounded down) and records if `pictures` needs it. `data` gives the input and checks every
/// element on every PE; null: data of the seed.
Result run_collective(const CollectiveRun& run, Setup setup, Size bytes, Pictures& pictures, Progress& progress,
                      const CollectiveData* data = nullptr);

}  // namespace tandem::cli
