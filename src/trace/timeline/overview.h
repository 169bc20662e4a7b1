#pragma once
/// The use of each node's SMs, links and NICs over time. It summarises timelines of too many PEs to draw.

#include <cstdint>
#include <string>
#include <vector>

#include "tandem/timeline.h"

namespace tandem::trace {

struct Overview {
  int bins = 0;  ///< Equal parts of the duration.
  int pes_per_node = 1;
  struct Part {
    std::string name;  ///< "SMs", "links out", "NICs in", ...
    int nodes = 0;
    /// Mean share of the time in which the node's lanes were busy, in percent: [node][bin]. Waits do not count as busy.
    std::vector<std::uint8_t> percent = {};
    /// Shares over the whole duration, of the least busy, the median and the busiest node.
    int least = 0, median = 0, most = 0;
  };
  std::vector<Part> parts = {};  ///< Only kinds that have lanes.
};

Overview overview_of(const Timeline& timeline, int bins);

}  // namespace tandem::trace
