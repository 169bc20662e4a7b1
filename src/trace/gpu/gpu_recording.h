#pragma once
/// What was recorded on GPUs, before it is a timeline: records as the kernels wrote them, and what the hosts know of
/// the work in their streams.

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

/// A piece of a stream's work: a kernel, or a copy.
struct GpuWork {
  int pe = 0;
  std::string name;    ///< "AllReduceTwoShot<bf16>"
  std::string stream;  ///< the lane of what has no lane of its own
  SpanKind kind = SpanKind::kKernel;
  Team team;  ///< of a kernel
  Size bytes = 0;
  std::uint64_t signal = 0;  ///< the word that a copy writes as a signal
  /// What its blocks wrote, one list a block, each beginning with its kBlock record; a block that did not run has none.
  /// When work without blocks was done is told by what was before and after it.
  std::vector<std::vector<cuda::Record>> blocks;
  /// Only there for its time, not to be drawn.
  bool hidden = false;
  /// Work, by its number in GpuRecording::work, that had to be done before.
  std::vector<std::size_t> after;
};

/// A place in symmetric memory.
struct GpuPlace {
  int pe = -1;  ///< -1: elsewhere
  Size offset = 0;
};

struct GpuRecording {
  std::string machine;
  int pes = 0;
  std::vector<GpuWork> work;
  std::vector<ClockMap> clocks;  ///< by PE: its GPU's clock as PE 0's
  ClockMap host;                 ///< PE 0's clock as the host's
  std::int64_t origin = 0;       ///< time 0 of the timeline, on the host's clock
  std::function<GpuPlace(std::uint64_t)> place;
  std::function<std::string(std::uint64_t)> name;  ///< of the buffer at an address: "arrived"
  /// The least time that a signal takes to a peer, nanoseconds: what arrives later than that before a wait began cannot
  /// have been waited for.
  std::int64_t signal_ns = 0;

  /// On the timeline, when PE `pe`'s GPU shows `ns`.
  Time time(int pe, std::uint64_t ns) const {
    const ClockMap& clock = clocks[static_cast<std::size_t>(pe)];
    return (host(clock(static_cast<std::int64_t>(ns))) - origin) * kNanosecond;
  }
};

/// A wait and the signal or packets that ended it, by the aligned clocks. Signals that copies write are not among them:
/// when they were written is concluded from the waits that they ended.
struct GpuRelease {
  int from = 0;    ///< PE
  int to = 0;      ///< PE
  Time after = 0;  ///< from the signal's sending to the wait's end; below 0 by as much the clocks must be wrong
};

/// What a conversion found out beside the timeline, and what it left out.
struct GpuFindings {
  std::vector<GpuRelease> releases;
  Size records = 0;       ///< operations that were recorded
  Size lost_records = 0;  ///< operations for which their block had no room
  Size unplaced = 0;      ///< pieces of work without a record before and behind them
  Size unmatched = 0;     ///< waits that had to wait, without a recorded signal that ended them
};

/// The timeline: SM lanes with blocks, their operations and those of roles; copy engines; arrows from signals and
/// packets to the waits that they ended, and along the order of streams. Times are picoseconds since `origin`.
Timeline to_timeline(const GpuRecording& recording, GpuFindings& findings);

}  // namespace tandem::trace
