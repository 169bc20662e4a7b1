#pragma once
/// The destinations of a GEMM's tiles, each with the notifications that belong to it. A GEMM has exactly one:
///
///   GemmLocal      C as a whole, at this PE (the default)
///   GemmScatter    the tiles of each owner's rows at that owner's collector, as partial sums
///   GemmBroadcast  every tile at every PE of the node, as a partial sum
///   GemmRing       a ring reduce-scatter in the epilogue: the own rows here, partial sums at the previous PE
///   GemmSum        the sum over all PEs, added up by the GEMM's blocks
///
/// A notification adds 1 to a word after a tile is visible at its destination. `chunk` below is
/// RowPartition::slot(owner, part), and block_at_collector is Gemm's function. All of them are plain data.

#include <type_traits>

#include "tandem/numeric.h"
#include "tandem/signal.h"

namespace tandem {

/// The signal after a tile of C is visible at this PE. With `local` it changes this PE's word [chunk], else the
/// collector's [rows.slot(block_at_collector(owner), part)].
struct GemmNotify {
  Signals words = {};  ///< [chunk]; without words there is no signal
  bool local = false;  ///< whether this PE's own word grows
};

/// C at this PE. With GemmGroups the notification is local and has a word for each chunk of columns.
struct GemmLocal {
  void* c = nullptr;       ///< m x columns_after(activation, n)
  GemmNotify notify = {};  ///< the signal after a tile is stored
};

/// The tiles of each owner's rows (own rows too) go to its collector, into block block_at_collector(owner) of its copy
/// of `blocks`. The buffer has `shards` blocks of shard_rows x n.
struct GemmScatter {
  Symm<std::byte> blocks = {};  ///< shards x shard_rows x n
  Signals notify = {};          ///< [rows.slot(block_at_collector(owner), part)] of the collector grows, if set
};

/// Every tile goes to every PE of the node, for small results that every PE adds itself. At each PE it goes into block
/// `me % node_size` of `blocks`, which has node_size blocks of m x n. Gemm::rows is one shard in one chunk.
struct GemmBroadcast {
  Symm<std::byte> blocks = {};  ///< node_size x m x n
  Signals notify = {};          ///< [me % node_size] of each PE grows, if set
};

/// A ring reduce-scatter in the epilogue. For rows of other owners, a PE adds its tile to the next PE's sum and
/// sends the result to the previous PE. Its own rows are complete after that addition. It needs the
/// order kPeersFirst, in which the neighbour computes each shard one step earlier. Sums travel as `out_type` and are
/// added in f32, starting with the PE before the owner. One node only.
struct GemmRing {
  void* c = nullptr;    ///< the own shard's rows, shard_rows x n
  Signals notify = {};  ///< this PE's [chunk] grows for tiles of the own rows, if set
  /// If set, a second destination of the own rows, shard_rows x n, that peers may read; `c` belongs to the user.
  std::byte* own_copy = nullptr;
  const std::byte* received = nullptr;  ///< sums received from the next PE: a block of shard_rows x n for each owner
  const Signal* arrived = nullptr;      ///< [chunk]: its tiles that have arrived in `received`, counted over all calls
  /// The destination of sums of other owners' rows, in the same blocks: at the previous PE, or here for a copy engine.
  std::byte* forwarded = nullptr;
  Signal* forwarded_tiles = nullptr;  ///< [chunk]: grows by one for each tile that is visible in `forwarded`
  const Epoch* epoch = nullptr;       ///< calls so far, including this one
};

/// Residual and RMS norm of the rows of a GemmSum, in the same kernel. `sum` is C plus the residual, rounded. C becomes
/// sum / sqrt(mean(sum^2) + epsilon) * weight + bias. The blocks exchange the squares of their columns, so all
/// of them run at the same time (skinny_norms in src/gemm/contract/skinny.h).
struct GemmNorm {
  const void* weight = nullptr;    ///< n values of `out_type`; null: no norm
  const void* bias = nullptr;      ///< n values of `out_type`, or null
  const void* residual = nullptr;  ///< m x n of `out_type`, or null
  void* sum = nullptr;             ///< m x n of `out_type`, or null
  float epsilon = 0;               ///< added to the mean of squares
  float* squares = nullptr;        ///< SkinnySquares::count, zero before the first call
  Signal* arrived = nullptr;       ///< one for each tile of columns; for the simulator, whose data carries no flag
};

/// A sum over all PEs of few rows, computed by the blocks of the GEMM: data carries its own flag, so nothing follows
/// the GEMM. C is the sum of PEs 0, 1, ..., each rounded to `out_type`, added in f32 and rounded once, so every PE gets
/// the same bits. Stream::adds_up says where it is available; `order` is kRowMajor.
struct GemmSum {
  void* c = nullptr;              ///< m x n
  Symm<std::byte> exchange = {};  ///< SkinnyExchange::bytes (src/gemm/contract/skinny.h), zero before the first call
  Epoch* calls = nullptr;         ///< here, one for each tile of columns, zero before the first call
  Signals arrived = {};           ///< SkinnyExchange::words; for the simulator, whose data carries no flag
  GemmNorm norm = {};             ///< if its weight is set, residual and norm follow the sum
};

/// One of the destinations above. An accessor returns null unless its destination is the one in use.
class GemmDestination {
 public:
  /// Makes an empty GemmLocal.
  TANDEM_DEVICE GemmDestination() : GemmDestination(GemmLocal{}) {}
  // NOLINTBEGIN(google-explicit-constructor): a destination is any of its alternatives
  /// Makes the destination a GemmLocal.
  TANDEM_DEVICE GemmDestination(const GemmLocal& local) : kind_(Kind::kLocal), local_(local) {}
  /// Makes the destination a GemmScatter.
  TANDEM_DEVICE GemmDestination(const GemmScatter& scatter) : kind_(Kind::kScatter), scatter_(scatter) {}
  /// Makes the destination a GemmBroadcast.
  TANDEM_DEVICE GemmDestination(const GemmBroadcast& all) : kind_(Kind::kBroadcast), broadcast_(all) {}
  /// Makes the destination a GemmRing.
  TANDEM_DEVICE GemmDestination(const GemmRing& ring) : kind_(Kind::kRing), ring_(ring) {}
  /// Makes the destination a GemmSum.
  TANDEM_DEVICE GemmDestination(const GemmSum& sum) : kind_(Kind::kSum), sum_(sum) {}
  // NOLINTEND(google-explicit-constructor)

  /// Returns the GemmLocal, or null.
  TANDEM_DEVICE const GemmLocal* local() const { return kind_ == Kind::kLocal ? &local_ : nullptr; }
  /// Returns the GemmScatter, or null.
  TANDEM_DEVICE const GemmScatter* scatter() const { return kind_ == Kind::kScatter ? &scatter_ : nullptr; }
  /// Returns the GemmBroadcast, or null.
  TANDEM_DEVICE const GemmBroadcast* broadcast() const { return kind_ == Kind::kBroadcast ? &broadcast_ : nullptr; }
  /// Returns the GemmRing, or null.
  TANDEM_DEVICE const GemmRing* ring() const { return kind_ == Kind::kRing ? &ring_ : nullptr; }
  /// Returns the GemmSum, or null.
  TANDEM_DEVICE const GemmSum* sum() const { return kind_ == Kind::kSum ? &sum_ : nullptr; }

  /// Returns the rows of C that this PE keeps in a buffer of its own. Null for GemmScatter and GemmBroadcast.
  TANDEM_DEVICE void* c() const {
    switch (kind_) {
      case Kind::kLocal:
        return local_.c;
      case Kind::kRing:
        return ring_.c;
      case Kind::kSum:
        return sum_.c;
      default:
        return nullptr;
    }
  }
  /// Returns whether the tiles of other PEs are added to this PE's tiles, by the GEMM or after it.
  TANDEM_DEVICE bool is_partial() const { return kind_ != Kind::kLocal; }

 private:
  enum class Kind { kLocal, kScatter, kBroadcast, kRing, kSum };

  Kind kind_;
  union {
    GemmLocal local_;
    GemmScatter scatter_;
    GemmBroadcast broadcast_;
    GemmRing ring_;
    GemmSum sum_;
  };
};
static_assert(std::is_trivially_copyable_v<GemmDestination>);

}  // namespace tandem
