#pragma once
/// The ring of partial sums through the PEs of a node (GemmRing), its memory, and the first and last step of a call.

#include <optional>
#include <string>

#include "operators/plan/operator.h"
#include "operators/ring/ring_steps.h"
#include "operators/ring/row_classes.h"

namespace tandem::ops {

class RingReduceScatter {
 public:
  /// `steps_beside`: steps on other streams run during the GEMM.
  RingReduceScatter(World& world, const Settings& settings, const std::string& name, bool steps_beside);

  /// Counts the call, of `m` rows. Without copies it waits until the previous PE's staging may be written.
  void begin(Stream& main, Size m);
  /// Returns the next GEMM. `own` has the destination of the complete sums of the own rows, and their notification.
  Gemm gemm(const OperatorCall& call, GemmRing own) const;
  /// Sends the sums of other PEs' rows, chunk by chunk. Called once the GEMM is enqueued.
  void follow(const Gemm& gemm);
  /// Lets `main` continue when all is sent. The next call's first step signals that this PE's staging may be written
  /// again.
  void end(Stream& main);

  /// The rows of the call.
  const RowPartition& rows() const { return rows_; }
  /// The number of calls so far.
  const Epoch* epoch() const { return steps_.epoch; }
  /// Words that count tiles exist for each class of rows. These are the number of all words, the words of the call, and
  /// the number of calls of its class.
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
  Symm<std::byte> staging_;        // [owner] x shard_rows x n: sums from the next PE
  Signals arrived_;                // [class][chunk]
  std::byte* partials_ = nullptr;  // copy engine: sums that this PE sends
  Signals computed_;               // copy engine, [class][chunk]: its tiles in partials_
  RingArgs steps_;
  Epoch* class_epochs_;
  std::optional<Stream> copies_;  // of copy engines
  Event begun_;
};

}  // namespace tandem::ops
