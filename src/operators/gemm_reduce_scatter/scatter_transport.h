#pragma once
/// The transport of a GEMM's partial sums to the PEs that own their rows, and their reduction there.
///
/// Within a node each PE collects the rows of its rail (Gemm::collector). They are its own rows and those of the PEs
/// with its number in the other nodes. There are four transports to the collector:
///
///   SMs, push           the GEMM stores its tiles straight into the collector's staging and counts them there
///   SMs, pull           tiles stay local and are counted at the collector, whose reduction loads them
///   copy engine, push   tiles stay local and are counted locally; complete pieces are copied to the staging
///   copy engine, pull   tiles stay local and are counted at the collector, which fetches complete pieces

#include <optional>
#include <vector>

#include "operators/plan/operator.h"
#include "operators/steps/reduce_shards.h"
#include "tandem/advanced/gemm_order.h"

namespace tandem::ops {

class ScatterTransport {
 public:
  ScatterTransport(World& world, const Settings& settings);

  /// Starts a call of `m` rows on `main`. It counts the call and waits until the peers have released the last call's
  /// data.
  void begin(Stream& main, Size m);
  /// Overlapped form: returns the GEMM's destination.
  GemmDestination destination() const;
  /// Overlapped form: copies the GEMM's chunks as they are completed. Called once the GEMM is enqueued.
  void follow(const Gemm& gemm);
  /// Other forms: notifies the collector that the present work of `main` completes the partial sums of `owner`'s rows.
  void publish(Stream& main, int owner);
  /// Sums into `out`, beside the GEMM if `beside`, and ends the call on `main`.
  void finish(Stream& main, void* out, const Gemm& gemm);

  std::byte* partials() const { return partials_.local(); }

 private:
  /// Copies a chunk to its collector.
  void push(int owner, int part);
  /// Fetches all chunks of this PE's rail.
  void pull(const Gemm& gemm);
  void await_computed(int slot, Size arrivals);
  template <class T>
  void launch_reduction(Stream& stream, void* out, const Gemm& gemm);
  Size shard_bytes() const { return rows_.shard_rows() * row_bytes_; }

  Team team_;
  Gemm layout_;  // for the rule of collectors
  bool overlapped_;
  CopyBy copy_by_;
  Direction direction_;
  RowPartition rows_;  // of the call
  Size row_bytes_;
  Activation activation_;
  Grid reducers_;
  Symm<std::byte> partials_;  // m x n: this PE's GEMM, unless its tiles go directly to their collectors
  Symm<std::byte> staging_;   // [shard's node, PE of this node] x shard_rows x n: one block from each PE of the node
  Symm<std::byte> node_sums_;
  std::byte* outgoing_ = nullptr;
  Signals computed_;  // copy engine: complete tiles, counted over all calls; push [chunk], pull [block][part] at
                      // the collector
  Epoch* expected_computed_;         // [as computed_]: value up to the last call
  Signals arrived_;                  // [block][part]: the reduction's input
  Epoch* expected_arrived_;          // see ReduceShards
  Signals crossed_;                  // see ReduceShards
  Signals released_;                 // [PE]
  Epochs epochs_;                    // one word
  std::optional<Stream> copies_;     // of copy engines
  std::optional<Stream> reduction_;  // beside the GEMM, on SMs of its own
  Event begun_;
  std::vector<Event> published_;  // peers pull whole products: one event for each shard of this call so far
};

}  // namespace tandem::ops
