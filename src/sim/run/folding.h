#pragma once
/// A simulation of some nodes that stands for one of many nodes that all do the same.
///
/// If an algorithm treats all nodes alike, node k sends to node k + d when node k - d sends to node k. So the kernels
/// of the first nodes alone run. A message to another node arrives at the node of these that stands for it. Its place
/// there belongs to its real sender: a signal word of a PE or node, or a PE's part of a staging for packets. The
/// folding moves that place by as many nodes as the message. Events then grow with the nodes instead of their square.
/// Messages have no data, so folded runs are phantom ones.

#include "tandem/range.h"

namespace tandem::sim {

struct NicMessage;
struct Simulator;

struct Folding {
  int nodes = 1;  ///< of which kernels run; it has to divide the number of nodes

  /// Throws InvalidArgument if this simulation cannot be folded so.
  void check(const Simulator& simulator) const;
  /// Returns whether kernels of this PE run.
  bool runs(const Simulator& simulator, int pe) const;
  /// Moves a message of a grid of `blocks` blocks to the node that stands for its target. Throws Unsupported if it is
  /// neither signals nor packets of a staging.
  void redirect(const Simulator& simulator, NicMessage& message, int blocks) const;
};

}  // namespace tandem::sim
