#pragma once
/// `tandem run` of a collective.

#include "tandem/collectives.h"
#include "tools/tandem/host/host_job.h"
#include "tools/tandem/main/setup.h"
#include "tools/tandem/options/arguments.h"
#include "tools/tandem/options/progress.h"
#include "tools/tandem/run/pictures.h"
#include "tools/tandem/run/result.h"

namespace tandem::cli {

/// How many elements `count` is for a size in bytes as nccl-tests counts it: of the larger buffer of a PE. Rounded
/// down.
Size count_of_bytes(Collective collective, Size bytes, int pes, Size element_bytes);
/// The inverse: the bytes that `count` elements are.
Size bytes_of_count(Collective collective, Size count, int pes, Size element_bytes);
/// Whether --root says something about it.
bool has_root(Collective collective);
/// bus bandwidth over algorithm bandwidth (nccl-tests, doc/PERFORMANCE.md).
double bus_factor(Collective collective, int pes);

/// Everything about a run but its size.
struct CollectiveRun {
  Collective collective = Collective::kAllReduce;
  CollectiveOptions options;
  bool normal_data = false;
  bool in_place = false;
  int warmups = 1;
  int iterations = 1;
};

/// Throws InvalidArgument for options that are none or do not fit together.
CollectiveRun make_collective_run(Collective collective, const Arguments& arguments, int pes);
/// Bytes of the larger input and of the larger output of any PE: symmetric buffers are equal on all.
struct BufferBytes {
  Size in = 0;
  Size out = 0;
};
BufferBytes buffer_bytes(const CollectiveRun& run, Size count, int pes);
/// Where input and output of an in-place call lie in their common buffer, in elements.
struct Places {
  Size in = 0;
  Size out = 0;
};
Places places_in_one_buffer(Collective collective, Size count, int pe, int root);
/// The parts of a Progress that `run_collective` does: its calls.
inline int parts_of(const CollectiveRun& run) { return run.warmups + run.iterations; }
/// Writes to standard error how long it takes, where that is minutes. Throws InvalidArgument where this computer has
/// too little memory for it.
void note_cost(const CollectiveRun& run, const Setup& setup);
/// Runs it for `bytes` (rounded down) on CPUs and checks every element on every PE; the time is the slowest PE's.
Result run_collective_on_host(const CollectiveRun& run, const HostJob& job, Size bytes);
/// Runs it for `bytes` (rounded down), checks every element on every PE and records where `pictures` wants it.
Result run_collective(const CollectiveRun& run, Setup setup, Size bytes, Pictures& pictures, Progress& progress);

}  // namespace tandem::cli
