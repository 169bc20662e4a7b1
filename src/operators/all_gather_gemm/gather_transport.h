#pragma once
/// How the shards of A reach every PE while a GEMM consumes them: by copy engines or SMs, pushed or pulled, within the
/// node and between nodes. Each piece's arrival is a word of `ready`; nothing here knows the GEMM.

#include <optional>
#include <vector>

#include "operators/plan/begin_turn.h"
#include "operators/plan/operator.h"
#include "operators/plan/pieces.h"

namespace tandem::ops {

class GatherTransport {
 public:
  GatherTransport(World& world, const Settings& settings);

  /// Enqueues a whole all-gather of `m` rows, of which `own` is this PE's shard, behind what `main` holds by now.
  void begin(Stream& main, const std::byte* own, Size m);
  /// `main` goes on when the pieces of the shards [first, first + shards) are here.
  void await(Stream& main, int first, int shards);
  /// After `end`: puts the own shard among the gathered rows, where the transport has not done it by itself.
  void place_own(Stream& main, const std::byte* own);
  /// Whether steps on streams of their own have to run while the GEMM does: then it leaves them kStepSms, beside the
  /// SMs of blocks that copy, which leave no room on theirs.
  bool has_steps_beside_gemm() const {
    return !team_.one_node() || (copy_by_ == CopyBy::kCopyEngine && direction_ == Direction::kPull);
  }
  /// Ends the call: `main` goes on when this PE's own sends are done. The next call's beginning says that this PE has
  /// read the gathered rows, so that the partners may send again.
  void end(Stream& main);

  const RowPartition& rows() const { return rows_; }
  /// All rows but the own shard's.
  const std::byte* gathered() const { return gathered_.local(); }
  GemmGate gate() const { return {ready_.local(), turn_.epoch, arrivals_}; }

 private:
  void push_by_copy_engine(const std::byte* own);
  void offer_by_copy_engine(const std::byte* own);
  void pull_by_copy_engine();
  void launch_sm_kernel(const std::byte* own);
  void send_to_rail(Stream& main, const std::byte* own);
  /// Copies one piece from `from` (which begins like the gathered buffer at `from_row`) to PE `to`, and signals it
  /// there.
  void copy_piece(Stream& stream, int owner, int part, const std::byte* from, Size from_row, int to);
  void await_word(Stream& stream, const Signals& word);
  Stream& stream_of(const PieceStep& step) {
    return copies_[static_cast<std::size_t>(step.peer_step) % copies_.size()];
  }

  Team team_;
  CopyBy copy_by_;
  Direction direction_;
  RowPartition rows_;  // of the call
  PieceOrder order_;
  Size row_bytes_;
  int sms_;       // blocks of the SM transport
  int arrivals_;  // what a piece's word grows by in each call
  bool full_mesh_;
  Symm<std::byte> gathered_;  // shards x shard_rows x k
  Signals ready_;             // [piece]: it is in this PE's gathered buffer
  Signals in_place_;          // pull, [block][piece]: it is in the gathered buffer of its holder in this node
  BeginTurn::Args turn_;
  std::vector<Stream> copies_;
  std::optional<Stream> offers_;  // pull by copy engine: says what is in place here
  std::optional<Stream> rail_;    // of several nodes
};

}  // namespace tandem::ops
