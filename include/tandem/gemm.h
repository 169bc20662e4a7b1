#pragma once
/// The contract of the GEMM with hooks: the one kernel that each backend provides itself.
///
///   C (m x n) = A (m x k, row-major) * B (n x k, row-major, as in PyTorch's Linear)^T
///
/// A persistent kernel goes through the tiles of C in `order`. Before it loads the rows of a tile it passes the `gate`,
/// and when a tile is visible where it belongs it sends `notify`. Rows of A and C belong to PEs in equal shards (`shards`), each
/// cut into `splits` pieces; gates and notifications have one signal word for each piece.
///
/// Everything here is plain data, so that the same description reaches a GPU kernel and the simulator.

#include "tandem/numeric.h"
#include "tandem/signal.h"

namespace tandem {

/// How rows are owned: `rows` in `shards` equal pieces (the last may be shorter), each in `splits` parts.
struct RowPartition {
  Size rows = 0;
  int shards = 1;
  int splits = 1;

  TANDEM_DEVICE Range shard(int owner) const { return split(rows, shards)[owner]; }
  TANDEM_DEVICE Range part(int owner, int part) const { return split(shard(owner), splits)[part]; }
  TANDEM_DEVICE int owner_of(Size row) const { return static_cast<int>(split(rows, shards).part_of(row)); }
  TANDEM_DEVICE int part_of(Size row) const {
    return static_cast<int>(split(shard(owner_of(row)), splits).part_of(row));
  }
  /// Index of a piece among all of them.
  TANDEM_DEVICE int slot(int owner, int part) const { return owner * splits + part; }
};

/// In which order tiles are computed. Each is a pure function of the tile's linear index: see gemm_order.h.
enum class TileOrder {
  kRowMajor,         ///< plain: for a GEMM that waits for nobody
  kOwnFirst,         ///< own shard, then the next PE's, and so on round; all tiles of a shard together
  kRing,             ///< own shard, then the previous PE's, and so on: the order in which a ring delivers
  kInterleaved,      ///< own shard, then part 0 of every peer, part 1 of every peer, ...: for a full mesh, whose links all deliver at once
  kPeersFirst,       ///< the next PE's shard first, own last: what others wait for leaves early
  kOtherNodesFirst,  ///< shards of the other nodes first, then the own node's, own last
  kOwnNodeFirst,     ///< own shard, own node's, then the other nodes' in ring order, as they arrive
};

/// What a tile waits for before its rows of A are read: the word of every piece that it touches, at least `*epoch`.
/// No words: nothing. The own shard is never waited for.
struct GemmGate {
  const Signal* words = nullptr;
  const Epoch* epoch = nullptr;
};

/// What is sent when all tiles of a piece of C's rows are visible: each tile adds 1 to the piece's word at its owner (or, with
/// `local`, at this PE), after its own stores.
struct GemmNotify {
  Signals words;
  bool local = false;
};

/// One matrix product with its hooks.
struct Gemm {
  Size m = 0, n = 0, k = 0;
  DType type = DType::kBF16;      ///< of A and B
  DType out_type = DType::kBF16;  ///< of C
  int tile_m = 128, tile_n = 256;
  int sms = 0;  ///< SMs that the persistent kernel takes; 0: all

  const void* a = nullptr;      ///< m x k; where `own_a` is set, the own shard's rows are taken from there instead
  const void* own_a = nullptr;  ///< own shard: its rows x k
  const void* b = nullptr;      ///< n x k

  RowPartition rows;  ///< of A where a gate is set, of C where a destination or a notification is
  int me = 0;
  int node_size = 1;
  TileOrder order = TileOrder::kRowMajor;
  GemmGate gate;
  GemmNotify notify;

  void* c = nullptr;  ///< m x n
  /// Where set, tiles of another PE's rows are stored straight to that PE: its copy of this buffer, rows counted from the
  /// begin of its shard. Own rows too.
  Symm<std::byte> c_at_owner;
};

}  // namespace tandem
