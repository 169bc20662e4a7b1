#pragma once
/// From measured times to a selection table.

#include "tune/selection.h"

namespace tandem::tune {

/// One measured way to run a collective at one size.
struct Measured {
  Size bytes = 0;
  std::string algorithm;
  int blocks = 0;
  double us = 0;
};

/// One way to run a collective. Empty and 0: what the library selects.
struct Candidate {
  std::string algorithm;
  int blocks = 0;
  Size most_bytes = 0;  ///< one plan serves all sizes up to this; 0: each size has a plan of its own
};

/// All ways of a collective that a sweep tries: algorithms (of a team of one node, or of several) and blocks; 0 blocks
/// where an algorithm has no use for the number.
std::vector<Candidate> candidates(Collective collective, bool one_node, const std::string& only_algorithm = "");

/// Who is left in a sweep whose sizes ascend.
class Contest {
 public:
  explicit Contest(std::vector<Candidate> candidates) : candidates_(std::move(candidates)) {}

  /// Those worth trying at `bytes`: up to 1 MiB all but who took longer at a smaller size than the best can take here,
  /// since latencies say nothing about bandwidth; then who was not much slower than the best at the size before.
  /// Packets not beyond 1 MiB: they double what travels. Copy engines at every size above: their copies begin late, and
  /// are ahead at the largest sizes only.
  std::vector<Candidate> at(Size bytes) const;
  /// What they took at `bytes`.
  void add(Size bytes, const std::vector<Measured>& measured);
  const std::vector<Measured>& measured() const { return measured_; }

 private:
  std::vector<Candidate> candidates_;
  std::vector<Measured> measured_;
};

/// `group` with a choice for each measured size: the one with the fewest blocks within 1 % of the quickest, or that of
/// the size before where it is within 1 % of that and takes no more blocks, so that noise does not make choices
/// alternate. A choice holds up to the geometric mean of its size and the next. `measured`: sizes ascend.
Group with_choices(Group group, const std::vector<Measured>& measured);

/// Puts a group into a table, in the place of the one for the same collective, PEs and elements.
void put(SelectionTable& table, const Group& group);

}  // namespace tandem::tune
