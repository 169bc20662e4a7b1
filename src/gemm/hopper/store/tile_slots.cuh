#pragma once
/// The slots of shared memory through which tiles leave a block: their shape, room and barriers.

#include <cutlass/arch/barrier.h>

#include "gemm/hopper/groups/panel_walk.cuh"
#include "gemm/hopper/groups/stored_tile.cuh"
#include "gemm/hopper/tile_box.cuh"
#include "gemm/hopper/tile_scales.cuh"
#include "gemm/hopper/tile_store_params.cuh"
#include "gemm/hopper/tma.cuh"

namespace tandem::cuda {

/// Element is the type of C, 16 bits or fp8. Scaled: the sums have scales. Gated: C has half of the tile's columns.
/// Grouped: the tiles are those of a PanelTable. Quantised: the tile makes the scales of C's blocks. Late: scaled sums
/// leave registers for boxes that are written late.
template <class Element, int TileM, int TileN, bool Scaled, bool Gated, bool Grouped, bool Quantised, bool Late>
class TileSlots {
 protected:
  static constexpr bool kIsFp8 = sizeof(Element) == 1;
  using Bias = std::conditional_t<kIsFp8, cutlass::bfloat16_t, Element>;
  static constexpr int kGroup = 128;  // threads
  static constexpr int kGroups = 2;
  static constexpr int kRows = TileM / kGroups;
  static constexpr int kCols = TileN % 64 == 0 ? 64 : 32;  // columns of the product in a box
  static constexpr int kKept = Gated ? kCols / 2 : kCols;  // columns of C in a box
  static constexpr int kBoxes = TileN / kCols;
  static constexpr int kSlots = 2;
  static constexpr int kSlotBytes = kRows * kKept * static_cast<int>(sizeof(Element));
  static constexpr int kLead = 8;  // tiles that a warpgroup may be ahead, at least the stages of the mainloop
  static_assert(kRows == 64 && sizeof(Element) <= 2 && TileN % kCols == 0 && kBoxes >= kSlots);
  static_assert(!Quantised || (kIsFp8 && Scaled && Gated && Grouped && TileN == 2 * kScaleBlock));
  using Box = TileBox<Element, kKept>;
  static constexpr int kPairs = Box::kPairs;
  // A thread has 232 registers. The next tile's sums take TileN / 2, and addresses and the like about 40.
  static constexpr int kFitting = cute::min(kBoxes, cute::max(0, 192 - TileN / 2) / kPairs);

 public:
  /// Boxes that may be written while the next tile is computed, one each step. There is room for the others; without it
  /// no box is deferred.
  static constexpr int kMostPending = !Late || kIsFp8 || kBoxes - kFitting > kSlots ? 0 : kFitting;
  /// Whether registers hold the addend, too. No tile has both an addend and deferred boxes.
  static constexpr bool kKeepsAddends = kMostPending == kBoxes;
  static constexpr bool kLoadsScales = Scaled;  ///< whether a warp calls load_scales()
  static constexpr int kSlices = 1;             ///< a block computes the whole depth
  /// If tiles are written late, other blocks may compute a part of the depth.
  using Table =
      std::conditional_t<Grouped, PanelTable, std::conditional_t<(kMostPending > 0), StreamKTileTable, TileTable>>;

  using Scales = std::conditional_t<Scaled, TileScales<TileM, TileN, kGroups * kGroup / 32>, NoTileScales>;
  struct alignas(1024) Storage {
    std::byte slots[kGroups][kSlots][kSlotBytes];
    cutlass::arch::ClusterTransactionBarrier ready[kGroups]
                                                  [kSlots];  ///< there is room, with the addend if there is one
    cutlass::arch::ClusterBarrier written[kGroups][kSlots];
    unsigned stored[kLead];  ///< number of warps that have stored each of the last tiles, over all tiles at its place
    Scales scales;
  };

  using Params = TileStoreParams<Bias>;
  static Params params(const Gemm& gemm, const TileTable& table, const Context& context) {
    return tile_store_params<Bias>(gemm, table, context, kRows, kKept);
  }

  __device__ static void prefetch(const Params& params, const TileTable& table) {
    prefetch_tensor_map(&params.c[table.chunks[0].owner]);
  }

  /// Called by one thread, before a barrier of the block.
  __device__ static void prepare(Storage& storage) {
    for (int group = 0; group < kGroups; ++group)
      for (int slot = 0; slot < kSlots; ++slot) {
        storage.ready[group][slot].init(1);
        storage.written[group][slot].init(kGroup / 32);
      }
    for (unsigned& stored : storage.stored) stored = 0;
    storage.scales.prepare();
    cutlass::arch::fence_barrier_init();
  }

 protected:
  __device__ TileSlots(const Params& params, Storage& storage, int group)
      : params_(params), storage_(storage), group_(group) {}

  // Boxes use the slots cyclically. Each barrier changes its phase once for each box of its slot.
  __device__ std::uint32_t phase() const { return boxes_ / kSlots % 2; }
  __device__ std::uint32_t slot_address(unsigned slot) const { return shared_address(storage_.slots[group_][slot]); }
  /// Returns whether the warpgroup has rows of the tile to store. With scales it stores others, too.
  template <class Tile>
  __device__ bool has_rows(const Tile& tile) const {
    if constexpr (Grouped && !Scaled)
      return group_ * kRows < tile.rows;
    else
      return true;
  }
  __device__ bool adds_to(const WalkedTile& tile) const {
    return params_.ring.arrived != nullptr && tile.chunk->owner != params_.ring.first_owner;
  }
  __device__ int row_of(const WalkedTile& tile) const {
    return tile.row - params_.shard_begin[tile.chunk->owner] + group_ * kRows;
  }
  __device__ static int col_of(const WalkedTile& tile, int box) {
    return (tile.column * TileN + box * kCols) / (kCols / kKept);
  }

  const Params& params_;
  Storage& storage_;
  const int group_;
  unsigned boxes_ = 0;
};

}  // namespace tandem::cuda
