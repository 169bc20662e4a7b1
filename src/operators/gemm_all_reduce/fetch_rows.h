#pragma once
/// All-gather of rows that a chain completes, by SMs: owners say piece by piece that their sums are there, and the
/// others load them straight to their results.
///
/// Few blocks do so beside the GEMM, many more when it has ended; all of them take chunks from one counter, so nobody
/// decides beforehand who moves how much.

#include "operators/plan/pieces.h"
#include "tandem/block.h"

namespace tandem::ops {

/// Threads of a block that fetches.
inline constexpr int kFetchThreads = 512;

/// Tells the peers of this PE's rows, as they are complete.
struct OfferRows {
  struct Args {
    Signals computed;             // [piece], own ones: tiles that are stored, counted over all calls of the class
    const Epoch* epoch_of_tiles;  // those calls
    Signals complete;             // [piece]
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
  /// Or one and some steps of the chain: the GEMM may leave no more SMs than there are blocks that fetch beside it.
  static constexpr int kBlocksPerSm = 2;
  /// What a block takes at a time: on an NVLink several times what it takes to ask for it.
  static constexpr Size kChunk = Size{256} << 10;

  struct Args {
    Symm<std::byte> own;  // shard_rows: each PE's rows
    std::byte* out;       // all rows
    Signals complete;     // [piece]
    const Epoch* epoch;
    Epoch* taken;  // chunks so far; 0 when the call begins
    RowPartition rows;
    Size row_bytes;
  };

  template <class Block>
  TANDEM_DEVICE static void run(Block& block, const Args& a) {
    Size mine = next(block, a);
    Size first = 0;  // of the part
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

  /// As many of each peer as the longest of their parts has. That is any shard's: one of a row more may be cut into
  /// fewer parts, which are longer.
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

  /// Peer by peer, each PE beginning with the next one: so each is asked by one other.
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

/// Begins a call: waits until all partners have fetched the last one's rows, and nothing is taken yet.
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

}  // namespace tandem::ops
