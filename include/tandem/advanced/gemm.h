#pragma once
/// The contract of the fused GEMM, the one kernel that each backend provides itself.
///
///   C (m x n) = activation(A (m x k, row-major) * B + bias), for fp8 with scales; gated activations halve n
///
/// B is row-major, either n x k as the weights of PyTorch's Linear (BLayout::kNxK), or k x n.
///
/// A persistent kernel computes the tiles of C in `order`. It waits at the `gate` before it loads the rows of a tile,
/// and stores the tile to its `destination`, which may notify PEs. The rows of A and C belong to PEs in
/// equal `shards`, each cut into `splits` chunks. Gates and notifications have one signal word for each chunk.
///
/// Everything here is plain data, so the same description reaches a GPU kernel and the simulator.

#include <cstring>

#include "tandem/advanced/gemm_destination.h"
#include "tandem/advanced/gemm_groups.h"
#include "tandem/advanced/gemm_scales.h"
#include "tandem/numeric.h"
#include "tandem/signal.h"

namespace tandem {

/// The ownership of rows: `rows` in `shards` equal shards (the last may be shorter), each cut into `splits` chunks.
struct RowPartition {
  Size rows = 0;   ///< rows of all shards
  int shards = 1;  ///< owners
  int splits = 1;  ///< chunks of each shard
  /// Chunks start at multiples of this number of rows of their shard. With the rows of a tile, no chunk adds tiles that
  /// are mostly empty.
  int align = 1;

  /// Returns the rows of an owner.
  TANDEM_DEVICE Range shard(int owner) const { return split(rows, shards)[owner]; }
  /// Returns the rows of every shard except the last ones.
  TANDEM_DEVICE Size shard_rows() const { return split(rows, shards).step(); }
  /// Returns the rows of a chunk.
  TANDEM_DEVICE Range part(int owner, int part) const { return split(shard(owner), splits, align)[part]; }
  /// Returns the owner of a row.
  TANDEM_DEVICE int owner_of(Size row) const { return static_cast<int>(split(rows, shards).part_of(row)); }
  /// Returns the number of the chunk within its shard that holds a row.
  TANDEM_DEVICE int part_of(Size row) const {
    return static_cast<int>(split(shard(owner_of(row)), splits, align).part_of(row));
  }
  /// Returns the index of a chunk among all chunks.
  TANDEM_DEVICE int slot(int owner, int part) const { return owner * splits + part; }
  /// Returns the number of chunks.
  TANDEM_DEVICE int slots() const { return shards * splits; }
};

/// The order in which tiles are computed, a pure function of the tile's linear index (gemm_order.h).
enum class TileOrder {
  kRowMajor,     ///< for a GEMM that waits for no peer
  kOwnFirst,     ///< own shard, then the next PE's, and so on around the ring; all tiles of a shard together
  kRing,         ///< own shard, then the previous PE's, and so on: the order in which a ring delivers
  kInterleaved,  ///< own shard, then chunk 0 of every peer, chunk 1 of every peer, ...: for a full mesh, whose links
                 ///< all deliver at once
  kPeersFirst,   ///< the next PE's shard first, own shard last: rows that peers wait for leave early
  kOtherNodesFirst,  ///< shards of the other nodes first, then the own node's, own shard last
  kOwnNodeFirst,     ///< own shard, own node's shards, then other nodes' shards in ring order, as they arrive
  kPartsFirst,       ///< chunk 0 of every shard (the next PE's first, own last), then chunk 1, ...: all shards progress
                     ///< alike, for results that every PE needs whole
};

/// The layout of the second factor in memory.
enum class BLayout {
  kNxK,  ///< one row for each column of C, as the weights of PyTorch's Linear
  kKxN,  ///< row-major as in the formula
};

/// A function applied to each element of C in f32, before the conversion to `out_type`. Names and definitions follow
/// PyTorch (torch.nn.functional).
enum class Activation {
  kNone,
  kRelu,  ///< max(x, 0)
  kGelu,  ///< x * (1 + erf(x / sqrt(2))) / 2
  kSilu,  ///< x / (1 + exp(-x))
  // Gated activations: B has gates and ups, and C one column for each pair of them (interleave_gates).
  kSwiGlu,  ///< silu(gate) * up
  kGeGlu,   ///< gelu(gate) * up
};

/// Neighbouring gates in B, which their ups follow. Threads of Hopper's tensor cores hold columns c and c + 8 of a
/// product, so a gated activation exchanges nothing between threads.
inline constexpr Size kGateGroup = 8;

/// Lays out the weights of a gated activation: gates 0 to 7, ups 0 to 7, gates 8 to 15, and so on. `gates` and `ups`
/// have `count` elements of `bytes` each, a multiple of 8, and `to` has twice as many. For BLayout::kNxK an element is
/// a row of B, and for kKxN one call lays out one row. With several PEs, each does so with its own gates and ups.
inline void interleave_gates(const void* gates, const void* ups, Size count, Size bytes, void* to) {
  const auto group = static_cast<std::size_t>(kGateGroup * bytes);
  const auto* gate = static_cast<const std::byte*>(gates);
  const auto* up = static_cast<const std::byte*>(ups);
  auto* next = static_cast<std::byte*>(to);
  for (Size i = 0; i < count / kGateGroup; ++i, gate += group, up += group, next += 2 * group) {
    std::memcpy(next, gate, group);
    std::memcpy(next + group, up, group);
  }
}

/// Returns whether the activation takes pairs of columns.
TANDEM_DEVICE constexpr bool is_gated(Activation activation) {
  return activation == Activation::kSwiGlu || activation == Activation::kGeGlu;
}
/// Returns the columns of C behind a product of `n` columns.
TANDEM_DEVICE constexpr Size columns_after(Activation activation, Size n) { return is_gated(activation) ? n / 2 : n; }

/// The wait before a tile's rows of A are read: the word of every chunk that the tile touches must have reached
/// `*epoch` times `arrivals`. A tile that follows shards touches one chunk, so it waits for one word. A tile of
/// kRowMajor may touch several. A tile of GemmGroups waits for GemmGroups::words words, the first of which is
/// GemmPanel::word. Without words there is no wait. Rows from `own_a` need no wait.
struct GemmGate {
  const Signal* words = nullptr;  ///< [chunk], of this PE
  const Epoch* epoch = nullptr;   ///< the number of the call, in device memory
  /// The growth of a chunk's word in each call: 1, or the number of blocks that deliver the chunk together.
  int arrivals = 1;
};

/// Workspace of stream-K: blocks leave partial sums of a tile here for the block that finishes the tile. One GEMM at a
/// time uses it. `sms` below is Gemm::sms, or all SMs of the GPU.
struct GemmWorkspace {
  Signal* words = nullptr;  ///< words_for(sms), zero before the first call
  float* sums = nullptr;    ///< sums_for(sms)

  static constexpr int kGroups = 2;         ///< warp groups of a block, each with a word
  static constexpr int kMostRows = 128;     ///< rows of the largest tile
  static constexpr int kMostColumns = 256;  ///< columns of the largest tile
  /// Returns the number of words.
  static constexpr Size words_for(int sms) { return Size{sms} * kGroups; }
  /// Returns the number of floats.
  static constexpr Size sums_for(int sms) { return Size{sms} * kMostRows * kMostColumns; }
};

/// One matrix product with its gate and its destination.
struct Gemm {
  Size m = 0;                     ///< rows of C
  Size n = 0;                     ///< columns of C
  Size k = 0;                     ///< depth of the product
  DType type = DType::kBF16;      ///< type of A and B
  DType out_type = DType::kBF16;  ///< type of C
  int tile_m = 128;               ///< rows of a tile
  int tile_n = 256;               ///< columns of a tile
  /// Row panels (of tile_m rows) of a chunk that are computed together, column by column. Their parts of A and B then
  /// stay in cache. 0: all panels of the chunk.
  int panel_group = 0;
  int sms = 0;  ///< SMs that the persistent kernel takes; 0: all

  const void* a = nullptr;           ///< m x k; if `own_a` is set, the own shard's rows are read from there instead
  const void* own_a = nullptr;       ///< rows of the own shard x k
  const void* b = nullptr;           ///< n x k, or k x n
  BLayout b_layout = BLayout::kNxK;  ///< layout of B
  /// n values of `out_type` (fp8: bf16), added to every row in f32; null: no bias. If tiles are partial sums, exactly
  /// one PE has a bias, and C has no scale. An activation needs complete sums, which GemmRing and GemmSum provide; with
  /// GemmScatter and GemmBroadcast the reducing kernel applies it, and `activation` is kNone here.
  const void* bias = nullptr;
  /// Applied to sum and bias before the conversion to `out_type`.
  Activation activation = Activation::kNone;
  GemmScales scales;  ///< for fp8
  /// fp8 on GPUs: the tensor cores may add products over the whole depth. Their sums have few bits (docs/cuda.md has
  /// the error). Otherwise sums of 128 products are added in f32. Kernels without this form, and other backends,
  /// compute the precise sums.
  bool fast_accumulation = false;

  RowPartition rows;  ///< rows of A if a gate is set, rows of C if its destination depends on owners
  int me = 0;         ///< this PE's number in the team
  int node_size = 1;  ///< PEs of a node
  TileOrder order = TileOrder::kRowMajor;  ///< the order of the tiles
  GemmGate gate;                           ///< the wait before rows of A are read
  GemmDestination destination;             ///< the place of C, and the signals behind its tiles
  /// If set, a GPU kernel for 16-bit types, or of fast_accumulation, may split the depth of the last wave's tiles over
  /// idle blocks (stream-K, src/gemm/contract/stream_k.h). The order of additions then depends on the problem and the
  /// number of SMs only.
  GemmWorkspace workspace;
  GemmGroups groups;  ///< if `count` is set, many products whose rows are known on the device only

  /// Returns whether the ring delivers a sum for `owner`'s rows.
  TANDEM_DEVICE bool ring_adds_to(int owner) const {
    return destination.ring() != nullptr && owner != (me + 1) % rows.shards;
  }

  /// Returns the PE of this node that collects partial sums of `owner`'s rows: the owner, or the PE with its number
  /// within this node.
  TANDEM_DEVICE int collector(int owner) const { return me - me % node_size + owner % node_size; }
  /// Returns the block of this PE's contribution there; a collector has a block for each (node of the owner, PE of this
  /// node).
  TANDEM_DEVICE int block_at_collector(int owner) const { return owner - owner % node_size + me % node_size; }
  /// Returns the number of tiles of a chunk of C, by which its notification grows in each call.
  TANDEM_DEVICE Size tiles_of_chunk(int owner, int part) const {
    return ceil_div(rows.part(owner, part).size(), tile_m) * ceil_div(n, tile_n);
  }
};

/// Returns the place of the scales in GemmGroups::gathered, behind m x k elements of the type of A.
inline Size gathered_scales(const Gemm& gemm) { return round_up(gemm.m * gemm.k * size_of(gemm.type), 16); }
/// Returns the bytes of GemmGroups::gathered: rows of A, and their scales if each row has some.
inline Size gathered_bytes(const Gemm& gemm) {
  const Size of_row = gemm.scales.a != nullptr ? gemm.scales.of_row(gemm.k) : 0;
  return gathered_scales(gemm) + gemm.m * of_row * Size{sizeof(float)};
}

}  // namespace tandem
