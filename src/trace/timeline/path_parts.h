#pragma once
/// Where the time of the critical path went: to work, to a link or a NIC, to their queues, or to latency.

#include <cstdint>
#include <string>
#include <vector>

#include "tandem/timeline.h"
#include "trace/timeline/analysis.h"

namespace tandem::trace {

enum class PathCause : std::uint8_t {
  kWork,     ///< A span of the path itself.
  kMoving,   ///< Its bytes were on a link or NIC.
  kQueued,   ///< Its bytes waited for a link or NIC that moved other bytes.
  kPaced,    ///< Its bytes waited in a queue pair while the NIC had nothing to do.
  kLatency,  ///< On the way, with no bytes on a link or NIC.
  kLaunch,   ///< From the end of one piece of work to the begin of the next.
  kIdle,     ///< Nothing recorded explains it.
};

struct PathPart {
  Time begin = 0;
  Time end = 0;
  PathCause cause = PathCause::kIdle;
  SpanKind kind = SpanKind::kTransfer;  ///< For its colour.
  std::uint32_t lane = kNoLane;         ///< Where it happened; the link or NIC of bytes.
  std::uint32_t label = 0;              ///< The label of the path's span.
};

/// The whole duration of the timeline, in order, without gaps and without overlaps. Empty for a timeline without spans.
std::vector<PathPart> path_parts(const Timeline& timeline, const std::vector<PathStep>& path);

/// The parts of one name together.
struct PathShare {
  std::string name;  ///< "compute", "queue of link out pe 3", "latency"
  PathCause cause = PathCause::kIdle;
  SpanKind kind = SpanKind::kTransfer;
  Time time = 0;
};

/// The longest first. Shares of several links are one, which names the link with most: "queue of link out pe 3 and 7
/// more".
std::vector<PathShare> path_shares(const Timeline& timeline, const std::vector<PathPart>& parts);

}  // namespace tandem::trace
