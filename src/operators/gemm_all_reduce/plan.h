#pragma once
/// The strategies of GEMM + AllReduce within a node. All leave the same bits on every PE: the sum in f32 of PEs 0, 1,
/// ..., rounded once.

#include <optional>

#include "operators/gemm_all_reduce/sum_and_fetch.h"
#include "operators/gemm_all_reduce/sum_of_all.h"
#include "operators/plan/operator.h"

namespace tandem::ops {

/// Threads of a block that adds shards.
inline constexpr int kSumThreads = 512;

/// For the fewest rows: the GEMM's blocks add their sums over all PEs (GemmSum), and nothing follows. If the options
/// have a norm, it is RMS norm, and the blocks norm the sums, too (GemmNorm).
class SkinnyGemmSum {
 public:
  SkinnyGemmSum(World& world, const Settings& settings);
  /// Computes c = the sum over all PEs of gemm's product. Returns false without any work if the stream's GEMM cannot
  /// add.
  bool run(Stream& main, const Gemm& gemm, const Team& team, void* c) const;
  /// Does the same for a call whose sums are normed.
  bool run_normed(Stream& main, const Gemm& gemm, const Team& team, const OperatorCall& call) const;

 private:
  bool add_up(Stream& main, Gemm gemm, const Team& team, const GemmSum& sum) const;

  GemmSum sum_;  // without the arguments of a call
  Activation activation_;
};

/// For few rows: every PE gets all partial sums. It takes the GEMM and one kernel.
///
/// The GEMM stores each tile to all PEs as soon as it is done, so that only the last tile's transfer is not hidden. For
/// the fewest rows a whole GEMM and packets after it are faster: packets need one trip and no counter. But they double
/// the bytes, and all of them follow the GEMM.
class OneShot {
 public:
  OneShot(World& world, const Settings& settings, Size max_m);
  /// Computes c = the sum over all PEs of gemm's product.
  void run(Stream& main, Gemm gemm, void* c);

 private:
  template <class T>
  void send_tiles(Stream& main, Gemm gemm, void* c);

  Team team_;
  Activation activation_;
  Grid grid_;
  Symm<std::byte> staging_;
  Signals arrived_, released_;
  Epoch *expected_, *through_, *finished_;
};

/// For many rows: each PE adds its own shard and the others fetch the sums, chunk by chunk during the GEMM.
///
/// One buffer of each kind suffices without a release. A PE that ends a call has every owner's sums, so every owner has
/// read the data that the next call's GEMM overwrites there. An owner overwrites its sums when it has tiles of the next
/// call from all PEs, which have then ended the last one.
class TwoShot {
 public:
  TwoShot(World& world, const Settings& settings);
  void run(Stream& main, Gemm gemm, void* c);

 private:
  void overlap(Stream& main, Gemm gemm);
  void shard_by_shard(Stream& main, const Gemm& all);
  /// Notifies the owner that the present work of `main` completes the partial sums of its rows.
  void notify_collector(Stream& main, int owner);
  template <class T>
  void sum(Stream& main, const Gemm& gemm, void* c);
  void fetch_by_copy_engine(std::byte* c);

  Team team_;
  Form form_;
  TileOrder order_;
  CopyBy copy_by_;
  bool pushed_;  // the GEMM stores its tiles to their owner
  int gemm_sms_;
  Grid grid_;
  RowPartition rows_;  // of the call
  Size row_bytes_;
  Activation activation_;
  Symm<std::byte> partials_, staging_, sums_;
  Signals arrived_, summed_;
  Epoch* expected_;
  Epochs epochs_;
  std::optional<Stream> additions_;  // beside the GEMM, on SMs of their own
  std::optional<Stream> copies_;     // of copy engines
  Event begun_;
};

}  // namespace tandem::ops
