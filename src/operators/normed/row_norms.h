#pragma once
/// The kernel launches that norm complete rows (norm_rows.h).

#include "tandem/operators.h"
#include "tandem/world.h"

namespace tandem::ops {

/// Rows of one launch. Null pointers are arguments that are not given.
struct RowsToNorm {
  Size rows = 0;
  const void* from = nullptr;
  const void* residual = nullptr;
  const void* weight = nullptr;
  const void* bias = nullptr;
  Symm<std::byte> out;
  void* sum = nullptr;
  Symm<float> scales;
};

class RowNorms {
 public:
  /// For up to `most` rows of `columns` elements of `type` in a launch.
  RowNorms(World& world, const OperatorNorm& norm, DType type, Size columns, Size most);
  /// Norms the rows on this PE.
  void run(Stream& main, const RowsToNorm& rows) const;
  /// Does the same with an output on all PEs. Each of `chunks` words of `ready` grows by `blocks()` on each peer.
  void push(Stream& main, const RowsToNorm& rows, const Signals& ready, int chunks) const;
  int blocks() const { return grid_.blocks; }

 private:
  /// Calls launch.operator()<T, Q>() for the types of rows and output.
  template <class Launch>
  void dispatch_types(const Launch& launch) const;
  template <class Args, class T, class Q>
  Args args_of(const RowsToNorm& rows) const;

  World world_;
  OperatorNorm norm_;
  DType type_;
  Size columns_;
  Grid grid_;
  std::byte* kept_ = nullptr;  // [block][columns]: the sums of a row, if they are no output
};

}  // namespace tandem::ops
