#pragma once
/// The norm of this PE's shard of A before all PEs gather it (OperatorOptions::norm).

#include "operators/normed/row_norms.h"
#include "operators/plan/operator.h"

namespace tandem::ops {

class ShardNorm {
 public:
  /// `scales`: the place of the shard's scales, if each row or group has one (GatheredScales::own).
  ShardNorm(World& world, const Settings& settings, const Symm<float>& scales);

  /// Norms `rows` of the shard. `to` is the place of the whole shard.
  void run(Stream& main, const OperatorCall& call, Range rows, const Symm<std::byte>& to) const {
    norms_.run(main, rows_to_norm(call, rows, to));
  }
  /// Norms the first `rows` rows, which are the whole shard, stores them on all PEs and signals `chunks` words there.
  void push(Stream& main, const OperatorCall& call, Size rows, const Symm<std::byte>& to, const Signals& ready,
            int chunks) const {
    norms_.push(main, rows_to_norm(call, {0, rows}, to), ready, chunks);
  }
  /// Returns whether `push` does all. It sends no scales.
  bool can_push() const { return scales_of_row_ == 0; }
  /// Returns the growth of a word in each `push`.
  int arrivals() const { return norms_.blocks(); }

 private:
  RowsToNorm rows_to_norm(const OperatorCall& call, Range rows, const Symm<std::byte>& to) const;

  Size given_row_bytes_, row_bytes_, scales_of_row_;
  Symm<float> scales_;
  RowNorms norms_;
};

}  // namespace tandem::ops
