#pragma once
/// The chain of partial sums through the PEs of a node (GemmChain), its memory, and the two ends of a call.

#include <optional>
#include <string>

#include "operators/plan/operator.h"
#include "operators/resolve/row_classes.h"
#include "operators/ring/chain_steps.h"

namespace tandem::ops {

class Chain {
 public:
  /// `steps_beside`: steps on other streams run while the GEMM does.
  Chain(World& world, const Settings& settings, const std::string& name, bool steps_beside);

  /// Counts the call, of `m` rows; where nobody copies, waits until the previous PE's staging may be written.
  void begin(Stream& main, Size m);
  /// The GEMM that comes next; `own_rows`: where the complete sums of the own rows go.
  Gemm gemm(const OperatorCall& call, void* own_rows) const;
  /// Once it is enqueued: sends on what it computes for others, piece by piece.
  void follow(const Gemm& gemm);
  /// `main` goes on when all is sent. The next call's beginning says that this PE's staging may be written again.
  void end(Stream& main);

  /// Of the call.
  const RowPartition& rows() const { return rows_; }
  /// Calls so far.
  const Epoch* epoch() const { return steps_.epoch; }
  /// What counts tiles has words for each class of rows: how many words in all, those of the call, and calls with it.
  Size tile_words() const { return Size{classes_.count()} * rows_.slots(); }
  Signals of_call(Signals words) const { return words + Size{class_} * rows_.slots(); }
  const Epoch* epoch_of_tiles() const { return steps_.of_class; }

 private:
  Settings settings_;
  Team team_;
  RowPartition rows_;  // of the call
  RowClasses classes_;
  int class_ = 0;  // of the call
  int sms_;
  Size row_bytes_;
  int previous_;
  Symm<std::byte> staging_;        // [owner] x shard_rows x n: what the next PE sends
  Signals arrived_;                // [class][piece]
  std::byte* partials_ = nullptr;  // copy engine: the same of what this PE sends
  Signals computed_;               // copy engine, [class][piece]: its tiles that are in partials_
  ChainArgs steps_;
  Epoch* class_epochs_;
  std::optional<Stream> copies_;  // of copy engines
  Event begun_;
};

}  // namespace tandem::ops
