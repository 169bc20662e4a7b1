#pragma once
/// The input of a GPU timeline: the records of the kernels, and what the hosts know about the work in their streams.

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "tandem/impl/cuda/record.h"
#include "tandem/range.h"
#include "tandem/team.h"
#include "tandem/timeline.h"
#include "trace/gpu/clock_alignment.h"

namespace tandem::trace {

/// One item of a stream's work: a kernel or a copy.
struct GpuWork {
  int pe = 0;
  std::string name;    ///< "AllReduceTwoShot<bf16>"
  std::string stream;  ///< the lane of work that has no lane of its own
  SpanKind kind = SpanKind::kKernel;
  Team team;  ///< kernels only
  Size bytes = 0;
  std::uint64_t signal = 0;  ///< the word that a copy writes as a signal
  /// Records of its blocks, one list for each block, starting with the kBlock record. A block that did not run has no
  /// records. The time of work without blocks is derived from its neighbours.
  std::vector<std::vector<cuda::Record>> blocks;
  /// Used for its time only and not drawn.
  bool hidden = false;
  /// Predecessors, by their numbers in GpuProfile::work.
  std::vector<std::size_t> after;
};

/// A place in symmetric memory.
struct GpuPlace {
  int pe = -1;  ///< -1: elsewhere
  Size offset = 0;
};

struct GpuProfile {
  std::string machine;
  int pes = 0;
  std::vector<GpuWork> work;
  std::vector<ClockMap> clocks;  ///< by PE: from its GPU's clock to PE 0's
  ClockMap host;                 ///< from PE 0's clock to the host's
  std::int64_t origin = 0;       ///< time 0 of the timeline, on the host's clock
  std::function<GpuPlace(std::uint64_t)> place;
  std::function<std::string(std::uint64_t)> name;  ///< name of the buffer at an address: "arrived"
  /// The shortest time of a signal to a peer in nanoseconds. A signal that arrived earlier than that before a wait
  /// began did not end the wait.
  std::int64_t signal_ns = 0;

  /// Returns the time on the timeline when PE `pe`'s GPU shows `ns`.
  Time time(int pe, std::uint64_t ns) const {
    const ClockMap& clock = clocks[static_cast<std::size_t>(pe)];
    return (host(clock(static_cast<std::int64_t>(ns))) - origin) * kNanosecond;
  }
};

/// A wait and the signal or packets that ended it, by the aligned clocks. Signals that copies write are excluded,
/// because their times are derived from the waits that they ended.
struct GpuRelease {
  int from = 0;    ///< PE
  int to = 0;      ///< PE
  Time after = 0;  ///< from the signal to the end of the wait; a negative value is an error of the clocks
};

/// Statistics of a conversion, and what it left out.
struct GpuFindings {
  std::vector<GpuRelease> releases;
  Size records = 0;       ///< recorded operations
  Size lost_records = 0;  ///< operations for which their block had no room
  Size unplaced = 0;      ///< work without a record before and after it
  Size unmatched = 0;     ///< blocked waits without a recorded signal that ended them
};

/// Makes the timeline. SM lanes hold blocks, their operations and those of roles; other lanes hold copy engines. Arrows
/// lead from signals and packets to the waits that they ended, and follow the order of streams. Times are picoseconds
/// since `origin`.
Timeline to_timeline(const GpuProfile& profile, GpuFindings& findings);

}  // namespace tandem::trace
