#pragma once
/// The transport of the shards of A to every PE while a GEMM consumes them. It uses copy engines or SMs, push or pull,
/// within the node and between nodes. The arrival of each chunk is a word of `ready`; the transport does not know the
/// GEMM.

#include <optional>
#include <vector>

#include "operators/all_gather_gemm/all_gather_push.h"
#include "operators/all_gather_gemm/shard_norm.h"
#include "operators/plan/acquire_buffer.h"
#include "operators/plan/chunk_order.h"
#include "operators/plan/operator.h"

namespace tandem::ops {

class GatherTransport {
 public:
  /// `norm`, if any, makes this PE's shard in the gathered rows; else the call's A is the shard.
  GatherTransport(World& world, const Settings& settings, const ShardNorm* norm);

  /// Enqueues a whole all-gather after the present work of `main`.
  void begin(Stream& main, const OperatorCall& call);
  /// Lets `main` continue when the chunks of the shards [first, first + shards) are here.
  void await(Stream& main, int first, int shards);
  /// After `end`: copies the own shard into the gathered rows, unless the transport has done so.
  void place_own(Stream& main, const OperatorCall& call);
  /// Returns whether steps on other streams must run while the GEMM does. The GEMM then leaves kStepSms to them. Blocks
  /// that copy have SMs of their own without room for steps.
  bool has_steps_beside_gemm() const {
    return !team_.one_node() || (copy_by_ == CopyBy::kCopyEngine && direction_ == Direction::kPull);
  }
  /// Ends the call: `main` continues when this PE's own sends are done. The next call's first step signals that this PE
  /// has read the gathered rows, so that the peers may send again.
  void end(Stream& main);

  const RowPartition& rows() const { return rows_; }
  /// Returns the buffer in which this PE's gathered rows lie, after `begin`.
  const std::byte* gathered() const { return gathered_.local(); }
  /// Returns this PE's shard, after `begin`.
  const std::byte* own(const OperatorCall& call) const {
    return norm_ != nullptr ? place_of_own().local() : static_cast<const std::byte*>(call.a);
  }
  /// Returns the place of this PE's shard among the gathered rows.
  Symm<std::byte> place_of_own() const { return gathered_ + rows_.shard(team_.me).begin * row_bytes_; }
  GemmGate gate() const { return {ready_.local(), acquire_.epoch, arrivals_}; }

 private:
  static constexpr int kSmThreads = 1024;

  // Steps of a shard that is normed first (normed_shard.cpp).
  void norm_own(Stream& main, const OperatorCall& call);
  /// Lets a stream continue when a part of the own shard, or all of it, is in place.
  void await_normed(Stream& stream, int part);
  void await_all_normed(Stream& stream);
  void push_normed(Stream& stream, AllGatherPush::Args args);

  void push_by_copy_engine(const std::byte* own);
  void notify_by_copy_engine(const std::byte* own);
  void pull_by_copy_engine();
  void launch_sm_kernel(Stream& stream, const std::byte* own);
  void send_to_rail(Stream& main, const std::byte* own);
  /// Copies one chunk from `from` (which starts like the gathered buffer at `from_row`) to PE `to`, and signals it
  /// there.
  void copy_chunk(Stream& stream, int owner, int part, const std::byte* from, Size from_row, int to);
  void await_word(Stream& stream, const Signals& word);
  Stream& stream_of(const ChunkStep& step) {
    return copies_[static_cast<std::size_t>(step.peer_step) % copies_.size()];
  }

  Team team_;
  const ShardNorm* norm_;
  CopyBy copy_by_;
  Direction direction_;
  RowPartition rows_;  // of the call
  ChunkOrder order_;
  Size row_bytes_;
  int sms_;       // blocks of the SM transport
  int arrivals_;  // growth of a chunk's word in each call
  bool full_mesh_;
  bool pushes_norm_ = false;  // the kernel that norms the shard stores it on all PEs
  Symm<std::byte> gathered_;  // shards x shard_rows x k
  Signals ready_;             // [chunk]: it is in this PE's gathered buffer
  Signals in_place_;          // pull, [block][chunk]: it is in the gathered buffer of its holder in this node
  AcquireBuffer::Args acquire_;
  std::vector<Stream> copies_;    // none: the copies are in the main stream
  std::optional<Stream> offers_;  // pull by copy engine: signals the data in place here
  std::optional<Stream> rail_;    // with several nodes
  std::vector<Event> normed_;     // of this call: the parts of the own shard that the norm puts in place; else none
};

}  // namespace tandem::ops
