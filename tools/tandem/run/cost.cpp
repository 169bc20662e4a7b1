#include "tools/tandem/run/cost.h"

#include <fmt/format.h>

#include "tandem/error.h"

namespace tandem::cli {
namespace {

/// Measured with `tandem run OP --machine h100x8-rail --nodes 128 --bytes 1M --phantom` (all_gather and reduce_scatter:
/// 256 nodes) on one core of a server processor, 2026-11-23. Per pair of PEs, since each PE has data of every other.
struct Cost {
  double us = 0;     ///< processor time of a call
  double bytes = 0;  ///< memory
};

Cost cost_of_pair(Collective collective) {
  switch (collective) {
    case Collective::kAllToAll:
      return {6, 1030};
    case Collective::kAllGather:
      return {3.6, 320};
    case Collective::kReduceScatter:
      return {0.9, 140};
    default:
      return {};  // linear in the number of PEs
  }
}

}  // namespace

std::string cost_note(Collective collective, int pes, int calls, double memory_bytes) {
  constexpr double gib = 1 << 30;
  constexpr double short_s = 120;
  const double pairs = static_cast<double>(pes) * pes;
  const Cost pair = cost_of_pair(collective);
  if (pairs * pair.bytes > memory_bytes)
    throw InvalidArgument(
        fmt::format("{} between {} PEs: its simulation needs about {:.0f} GiB, this computer has {:.1f} "
                    "GiB: fewer PEs or nodes",
                    name(collective), pes, pairs * pair.bytes / gib, memory_bytes / gib));
  const double seconds = pairs * pair.us * 1e-6 * calls;
  if (seconds < short_s) return "";
  return fmt::format("{} between {} PEs: the simulation of {} calls takes about {:.0f} minutes and {:.1f} GiB",
                     name(collective), pes, calls, seconds / 60, pairs * pair.bytes / gib);
}

}  // namespace tandem::cli
