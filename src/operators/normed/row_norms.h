#pragma once
/// The kernel launch that norms complete rows (norm_rows.h), with the options of a plan.

#include "operators/plan/operator.h"

namespace tandem::ops {

class RowNorms {
 public:
  /// For up to `most` rows of this PE.
  RowNorms(World& world, const OperatorOptions& options, Size most);
  /// Returns the place of the sums of a call. A quantised C has no room for them.
  void* place_of_sums(const OperatorCall& call) const { return sums_ != nullptr ? sums_ : call.c[0]; }
  /// Norms `rows` rows there.
  void run(Stream& main, const OperatorCall& call, Size rows) const;

 private:
  template <class T, class Q>
  void launch(Stream& main, const OperatorCall& call, Size rows) const;

  World world_;
  OperatorOptions options_;
  Grid grid_;
  std::byte* sums_ = nullptr;
  std::byte* kept_ = nullptr;  // [block][n]: the sums of a row, if they are no output
};

}  // namespace tandem::ops
