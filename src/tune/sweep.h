#pragma once
/// The step from measured times to a selection table.

#include "tune/selection.h"

namespace tandem::tune {

/// One measured candidate at one size.
struct Measured {
  Size bytes = 0;
  std::string algorithm;
  int blocks = 0;
  double us = 0;
};

/// A candidate: algorithm and blocks of a collective. Empty and 0: the library's selection.
struct Candidate {
  std::string algorithm;
  int blocks = 0;
  Size most_bytes = 0;  ///< one plan serves all sizes up to this; 0: one plan for each size
};

/// Returns all candidates of a collective for a sweep: algorithms (for a team on one node, or on several) and blocks.
/// Blocks are 0 if the algorithm ignores the number.
std::vector<Candidate> candidates(Collective collective, bool one_node, const std::string& only_algorithm = "");

/// The candidates that remain in a sweep with ascending sizes.
class Contest {
 public:
  explicit Contest(std::vector<Candidate> candidates) : candidates_(std::move(candidates)) {}

  /// Returns the candidates worth a measurement at `bytes`. Up to 1 MiB it drops those that took longer at a smaller
  /// size than the best can take here, since latency does not predict bandwidth. Above, it drops those that were much
  /// slower than the best at the previous size. Packets stop at 1 MiB, because they double the bytes. Copy engines stay
  /// at every larger size: they start late and win at the largest sizes only.
  std::vector<Candidate> at(Size bytes) const;
  /// Adds the times that were measured at `bytes`.
  void add(Size bytes, const std::vector<Measured>& measured);
  const std::vector<Measured>& measured() const { return measured_; }

 private:
  std::vector<Candidate> candidates_;
  std::vector<Measured> measured_;
};

/// Returns `group` with a choice for each measured size. The choice is the candidate with the fewest blocks within 1 %
/// of the fastest. The previous size's choice stays if it is within 1 % of that and takes no more blocks, so that noise
/// does not make choices alternate. A choice is valid up to the geometric mean of its size and the next. `measured` has
/// ascending sizes.
Group with_choices(Group group, const std::vector<Measured>& measured);

/// Puts a group into a table. It replaces the group of the same collective, PEs and element size.
void put(SelectionTable& table, const Group& group);

}  // namespace tandem::tune
