#pragma once
/// The composition of the critical path: work, links and NICs, their queues, and latency.

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
  kLatency,  ///< under way, with no bytes on a link or NIC
  kLaunch,   ///< From the end of one piece of work to the begin of the next.
  kIdle,     ///< no record explains it
};

struct PathPart {
  Time begin = 0;
  Time end = 0;
  PathCause cause = PathCause::kIdle;
  SpanKind kind = SpanKind::kTransfer;  ///< For its colour.
  std::uint32_t lane = kNoLane;         ///< Where it happened; the link or NIC of bytes.
  std::uint32_t label = 0;              ///< The label of the path's span.
};

/// Returns the parts for the whole duration in order, without gaps and overlaps. It is empty for a timeline without
/// spans.
std::vector<PathPart> path_parts(const Timeline& timeline, const std::vector<PathStep>& path);

/// The sum of all parts with one name.
struct PathShare {
  std::string name;  ///< "compute", "queue of link out pe 3", "latency"
  PathCause cause = PathCause::kIdle;
  SpanKind kind = SpanKind::kTransfer;
  Time time = 0;
};

/// Returns the shares, longest first. Several links are combined into one share, named after the largest: "queue of
/// link out pe 3 and 7 more".
std::vector<PathShare> path_shares(const Timeline& timeline, const std::vector<PathPart>& parts);

}  // namespace tandem::trace
