#pragma once
/// The contract of the GEMM with hooks: the one kernel that each backend provides itself.
///
///   C (m x n) = activation(A (m x k, row-major) * B + bias), of fp8 with scales
///
/// with B as n x k, row-major, as the weights of PyTorch's Linear (BLayout::kNxK), or as k x n, row-major.
///
/// A persistent kernel goes through the tiles of C in `order`. Before it loads the rows of a tile it passes the `gate`,
/// and when a tile is visible where it belongs it sends `notify`. Rows of A and C belong to PEs in equal shards
/// (`shards`), each cut into `splits` pieces; gates and notifications have one signal word for each piece.
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
  /// Parts begin at multiples of so many rows of their shard: a tile's, so that no part makes tiles that are mostly
  /// empty.
  int align = 1;

  TANDEM_DEVICE Range shard(int owner) const { return split(rows, shards)[owner]; }
  /// Rows of every shard but the last ones.
  TANDEM_DEVICE Size shard_rows() const { return split(rows, shards).step(); }
  TANDEM_DEVICE Range part(int owner, int part) const { return split(shard(owner), splits, align)[part]; }
  TANDEM_DEVICE int owner_of(Size row) const { return static_cast<int>(split(rows, shards).part_of(row)); }
  TANDEM_DEVICE int part_of(Size row) const {
    return static_cast<int>(split(shard(owner_of(row)), splits, align).part_of(row));
  }
  /// Index of a piece among all of them.
  TANDEM_DEVICE int slot(int owner, int part) const { return owner * splits + part; }
  TANDEM_DEVICE int slots() const { return shards * splits; }
};

/// In which order tiles are computed. Each is a pure function of the tile's linear index: see gemm_order.h.
enum class TileOrder {
  kRowMajor,     ///< plain: for a GEMM that waits for nobody
  kOwnFirst,     ///< own shard, then the next PE's, and so on round; all tiles of a shard together
  kRing,         ///< own shard, then the previous PE's, and so on: the order in which a ring delivers
  kInterleaved,  ///< own shard, then part 0 of every peer, part 1 of every peer, ...: for a full mesh, whose links all
                 ///< deliver at once
  kPeersFirst,   ///< the next PE's shard first, own last: what others wait for leaves early
  kOtherNodesFirst,  ///< shards of the other nodes first, then the own node's, own last
  kOwnNodeFirst,     ///< own shard, own node's, then the other nodes' in ring order, as they arrive
  kPartsFirst,       ///< part 0 of every shard (the next PE's first, own last), then part 1 of every shard, ...: where
                     ///< all shards are wanted, each is complete up to its next part everywhere at about the same time
};

/// How the second factor lies in memory.
enum class BLayout {
  kNxK,  ///< one row for each column of C, as the weights of PyTorch's Linear
  kKxN,  ///< row-major as in the formula
};

/// What is applied to each element of C, in f32, before it is converted to `out_type`. Names and definitions are those
/// of PyTorch (torch.nn.functional).
enum class Activation {
  kNone,
  kRelu,  ///< max(x, 0)
  kGelu,  ///< x * (1 + erf(x / sqrt(2))) / 2
  kSilu,  ///< x / (1 + exp(-x))
};

/// The factors that fp8 values stand for, f32 in the GPU's memory; null: 1. Sums are in f32 and not scaled:
/// C[i][j] = activation(a[i] * b[j] * sum + bias[j]) * c.
struct GemmScales {
  const float* a = nullptr;
  bool a_per_row = false;  ///< one for each of the m rows, else one for all
  const float* b = nullptr;
  bool b_per_column = false;  ///< one for each of the n columns, else one for all
  const float* c = nullptr;   ///< one for all of C
};

/// What a tile waits for before its rows of A are read: the word of every piece that it touches, at least `*epoch`
/// times `arrivals`. No words: nothing. Rows that are read from `own_a` are never waited for.
struct GemmGate {
  const Signal* words = nullptr;
  const Epoch* epoch = nullptr;
  /// What a piece's word grows by in each call: 1, or the number of blocks that deliver the piece together.
  int arrivals = 1;
};

/// What is sent when a tile of C is visible where it is stored: it adds 1 to the word of its piece. With `local` that
/// is this PE's word [rows.slot(owner, part)], else the collector's word [rows.slot(block_at_collector(owner), part)].
struct GemmNotify {
  Signals words;
  bool local = false;
};

/// Sums that travel from PE to PE while they grow, as in a ring reduce-scatter: for all rows but its own, a PE adds
/// what it has got from the next PE and the sum goes to the previous one; its own rows are complete when it has added
/// what it got. Needs the order kPeersFirst, in which what a PE wants was computed one shard earlier by its neighbour.
/// Sums travel as `out_type` and are added in f32, beginning with the PE before the owner.
struct GemmChain {
  const std::byte* begun = nullptr;  ///< what the next PE sent, here: a block of shard_rows x n for each owner
  const Signal* arrived = nullptr;   ///< [piece]: its tiles that are in `begun`, counted over all calls
  /// Where the sums of other owners' rows are stored, blocks likewise: at the previous PE, or here to be sent on.
  std::byte* passed_on = nullptr;
  Signal* told = nullptr;        ///< [piece]: grows by one for each tile that is visible there
  const Epoch* epoch = nullptr;  ///< calls so far, this one included
  /// Where set, the own rows are stored here too, shard_rows x n: `c` is the user's, and no peer may read it.
  std::byte* own_copy = nullptr;
};

/// Few rows that are added up over all PEs by the blocks that compute them: what is data is its own signal, so that
/// nothing follows the GEMM. C is then the sum of PEs 0, 1, ..., each rounded to `out_type`, added in f32 and rounded
/// once: the same bits on every PE. Only where Stream::adds_up says so; `order` is kRowMajor.
struct GemmSum {
  Symm<std::byte> exchange;  ///< FewRowsExchange::bytes (src/gemm/few_rows.h), zero before the first call
  Epoch* calls = nullptr;    ///< here, one for each tile of columns, zero before the first call
};

/// Where blocks leave sums of some steps of a tile's depth for the block that finishes the tile: memory of this PE for
/// one GEMM at a time. Gemm::sms, or all SMs of the GPU: `sms`.
struct GemmWorkspace {
  Signal* words = nullptr;  ///< words_for(sms), zero before the first call
  float* sums = nullptr;    ///< sums_for(sms)

  static constexpr int kGroups = 2;                          ///< of a block, each with a word
  static constexpr int kMostRows = 128, kMostColumns = 256;  ///< of a tile
  static constexpr Size words_for(int sms) { return Size{sms} * kGroups; }
  static constexpr Size sums_for(int sms) { return Size{sms} * kMostRows * kMostColumns; }
};

/// One matrix product with its hooks.
struct Gemm {
  Size m = 0, n = 0, k = 0;
  DType type = DType::kBF16;      ///< of A and B
  DType out_type = DType::kBF16;  ///< of C
  int tile_m = 128, tile_n = 256;
  /// Row panels (of tile_m rows) of a piece that are computed column by column before the next ones: what they share of
  /// A and B stays in cache. 0: all of the piece's.
  int panel_group = 0;
  int sms = 0;  ///< SMs that the persistent kernel takes; 0: all

  const void* a = nullptr;      ///< m x k; where `own_a` is set, the own shard's rows are taken from there instead
  const void* own_a = nullptr;  ///< own shard: its rows x k
  const void* b = nullptr;      ///< n x k, or k x n
  BLayout b_layout = BLayout::kNxK;
  /// n values of `out_type` (fp8: of bf16), added to every row in f32; null: none. Where tiles are partial sums that
  /// are added up elsewhere, one PE's bias is in the sum, and no scale of C may be. An activation is of complete sums:
  /// with `chain` and `sum` too; with `c_at_collector` and `c_at_all` it is for whoever adds up, and none may be here.
  const void* bias = nullptr;
  Activation activation = Activation::kNone;
  GemmScales scales;

  RowPartition rows;  ///< of A where a gate is set, of C where a destination or a notification is
  int me = 0;
  int node_size = 1;
  TileOrder order = TileOrder::kRowMajor;
  GemmGate gate;
  GemmNotify notify;

  void* c = nullptr;  ///< m x n
  /// Where set, the tiles of `owner`'s rows (own rows too) are stored straight to its collector: into block
  /// block_at_collector(owner) of its copy of this buffer, which has `shards` blocks of shard_rows x n.
  Symm<std::byte> c_at_collector;
  /// Where set, every tile is stored to every PE of the node instead, for results so small that everybody adds them up:
  /// into block `me % node_size` of its copy of this buffer, which has node_size blocks of m x n. A notification adds 1
  /// to the word [me % node_size] of each of them. `rows` is one shard in one piece.
  Symm<std::byte> c_at_all;
  /// Where set, `c` is for the own shard's rows alone, and tiles of other owners travel on; `notify`, which has to be
  /// local, is for the own rows, `c_at_collector` not used. One node only.
  GemmChain chain;
  GemmSum sum;  ///< where `calls` is set: C is the sum over all PEs
  /// Where set, a GPU's kernel for 16-bit types may have blocks that would be idle in the last wave compute a part of
  /// the depth of its tiles (src/gemm/shared_depth.h). Sums are then added in another order, which depends on the
  /// problem and the number of SMs alone.
  GemmWorkspace workspace;

  /// Whether the chain brings something to add to `owner`'s rows.
  TANDEM_DEVICE bool chain_adds_to(int owner) const {
    return chain.begun != nullptr && owner != (me + 1) % rows.shards;
  }

  /// Who gathers the partial sums of `owner`'s rows in this node: the owner, or the PE with its number within this
  /// node.
  TANDEM_DEVICE int collector(int owner) const { return me - me % node_size + owner % node_size; }
  /// Where this PE's contribution goes there: a collector has one block for each (node of the owner, PE of this node).
  TANDEM_DEVICE int block_at_collector(int owner) const { return owner - owner % node_size + me % node_size; }
  /// How many tiles a piece of C has: what its notification counts up to in each call.
  TANDEM_DEVICE Size tiles_of_piece(int owner, int part) const {
    return ceil_div(rows.part(owner, part).size(), tile_m) * ceil_div(n, tile_n);
  }
};

}  // namespace tandem
