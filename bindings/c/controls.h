#pragma once
/// A user's settings of how calls run.

#include <array>
#include <string>

#include "tandem/collectives.h"

namespace tandem::c {

/// The same on all PEs.
struct Controls {
  /// Most blocks of a call's kernel; 0: chosen by size.
  int max_blocks = 0;
  /// By collective; empty: the one that suits.
  std::array<std::string, kCollectives> algorithms = {};
  /// Graphs on GPUs run in the order of their launches, before and behind plain calls. PEs may differ in it.
  bool orders_graphs = false;
  /// Staging is made for the first call that needs it, and not with the world.
  bool stages_when_needed = false;

  /// Empty where nothing was said.
  std::string text() const;
};

/// `algorithms`: "all_reduce=ring, broadcast=chain", or null. Throws InvalidArgument, with what is allowed.
Controls parse_controls(int max_blocks, const char* algorithms);
/// Throws InvalidArgument where they are not this machine's.
void check_controls(const Controls& controls, const Machine& machine);

}  // namespace tandem::c
