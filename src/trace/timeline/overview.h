#pragma once
/// How busy each node's SMs, links and NICs were over time: what remains of a timeline of too many PEs.

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
    /// Mean share of the time for which the node's lanes were busy, in percent: [node][bin]. Waits are not busy.
    std::vector<std::uint8_t> percent = {};
    /// Over the whole duration, of the least, the middle and the most busy node.
    int least = 0, median = 0, most = 0;
  };
  std::vector<Part> parts = {};  ///< Only kinds that have lanes.
};

Overview overview_of(const Timeline& timeline, int bins);

}  // namespace tandem::trace
