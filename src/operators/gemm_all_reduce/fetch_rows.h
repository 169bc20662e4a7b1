#pragma once
/// All-gather of rows that a ring completes, by SMs. Owners signal chunk by chunk that their sums are complete, and the
/// others load them directly into their results.
///
/// Few blocks do so beside the GEMM, many more after it. All of them take chunks from one counter, so the division of
/// work is dynamic.

#include "base/gpu_kernel.h"
#include "operators/plan/chunk_order.h"
#include "tandem/block.h"

namespace tandem::ops {

/// Threads of a fetching block.
inline constexpr int kFetchThreads = 512;

/// Notifies the peers of this PE's rows as they are completed.
struct NotifyRows {
  struct Args {
    Signals computed;             // [chunk], own ones: stored tiles, counted over all calls of the class
    const Epoch* epoch_of_tiles;  // those calls
    Signals complete;             // [chunk]
    const Epoch* epoch;
    RowPartition rows;
    int tile_m;
    Size columns;  // of tiles
  };

  template <class Block>
  TANDEM_DEVICE static void run(Block& block, const Args& a) {
    const Epoch epoch = block.load_scalar(a.epoch);
    const Epoch calls = block.load_scalar(a.epoch_of_tiles);
    for (int part = 0; part < a.rows.splits; ++part) {
      const Range rows = a.rows.part(block.pe(), part);
      if (rows.empty()) continue;
      const int slot = a.rows.slot(block.pe(), part);
      const auto tiles = static_cast<Epoch>(ceil_div(rows.size(), a.tile_m) * a.columns);
      block.wait(a.computed + slot, 1, calls * tiles);
      for (const int pe : block.peers_from_self()) block.notify(a.complete + slot, epoch, pe);
    }
  }
};

/// Loads the rows of all peers.
struct FetchRows {
  /// At most one, or one with some steps of the ring, fits an SM. The GEMM may leave only as many SMs as there are
  /// blocks.
  static constexpr int kBlocksPerSm = 2;
  /// The unit of a block's work. On NVLink its transfer takes several times the latency of the request.
  static constexpr Size kChunk = Size{256} << 10;

  struct Args {
    Symm<std::byte> own;  // shard_rows: each PE's rows
    std::byte* out;       // all rows
    Signals complete;     // [chunk]
    const Epoch* epoch;
    Epoch* taken;  // chunks so far; 0 at the start of the call
    RowPartition rows;
    Size row_bytes;
  };

  template <class Block>
  TANDEM_DEVICE static void run(Block& block, const Args& a) {
    Size mine = next(block, a);
    Size first = 0;  // start of the part
    for (int part = 0; part < a.rows.splits; ++part) {
      const Size of_peer = chunks_of_peer(a, part);
      const Size end = first + of_peer * (block.num_pes() - 1);
      if (mine < end) await(block, a, part);
      for (; mine < end; mine = next(block, a))
        fetch(block, a, part, (mine - first) / of_peer, (mine - first) % of_peer);
      first = end;
    }
  }

 private:
  template <class Block>
  TANDEM_DEVICE static Size next(Block& block, const Args& a) {
    return static_cast<Size>(block.fetch_add(a.taken, Epoch{1}, Scope::kGpu, Order::kRelaxed));
  }

  /// The number for each peer is that of the longest part. Any shard may have the longest: one with a row more may be
  /// cut into fewer, longer parts.
  TANDEM_DEVICE static Size chunks_of_peer(const Args& a, int part) {
    Size most = 0;
    for (int owner = 0; owner < a.rows.shards; ++owner) most = max(most, a.rows.part(owner, part).size());
    return ceil_div(most * a.row_bytes, kChunk);
  }

  template <class Block>
  TANDEM_DEVICE static void await(Block& block, const Args& a, int part) {
    const Epoch epoch = block.load_scalar(a.epoch);
    for (const int owner : block.peers_from_self())
      if (!a.rows.part(owner, part).empty()) block.wait(a.complete + a.rows.slot(owner, part), 1, epoch);
  }

  /// Peers are visited one by one, starting with the next PE, so that each is read by one other PE at a time.
  template <class Block>
  TANDEM_DEVICE static void fetch(Block& block, const Args& a, int part, Size peer, Size chunk) {
    const auto owner = static_cast<int>((block.pe() + 1 + peer) % block.num_pes());
    const Range piece = bytes_of(a.rows.part(owner, part), a.row_bytes);
    const Size begin = piece.begin + chunk * kChunk;
    if (begin >= piece.end) return;
    const Size in_shard = begin - a.rows.shard(owner).begin * a.row_bytes;
    block.get(a.out + begin, a.own + in_shard, min(kChunk, piece.end - begin), owner);
  }
};

/// Starts a call: waits until all peers have fetched the last one's rows, and resets the counter.
struct BeginFetch {
  struct Args {
    Signals fetched;  // [PE]: the last call whose rows it has
    const Epoch* epoch;
    Epoch* taken;
  };

  template <class Block>
  TANDEM_DEVICE static void run(Block& block, const Args& a) {
    const Epoch epoch = block.load_scalar(a.epoch);
    for (const int pe : block.peers_from_self()) block.wait(a.fetched + pe, 1, epoch - 1);
    block.store_scalar(a.taken, Epoch{0});
  }
};

TANDEM_GPU_STEP(NotifyRows);
TANDEM_GPU_KERNEL(FetchRows, kFetchThreads);
TANDEM_GPU_STEP(BeginFetch);
TANDEM_GPU_BETWEEN_NODES(NotifyRows);
TANDEM_GPU_BETWEEN_NODES(FetchRows);

}  // namespace tandem::ops
