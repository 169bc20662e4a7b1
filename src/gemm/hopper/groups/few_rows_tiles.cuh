#pragma once
/// The common part of the stores of few rows. Each of two warpgroups writes its part of a tile into a slot of shared
/// memory. A warp of its own stores the slot's rows that the panel has, and sends the notification.

#include <cutlass/arch/barrier.h>

#include "gemm/hopper/epilogue.cuh"
#include "gemm/hopper/gemm_profiler.cuh"
#include "gemm/hopper/groups/panel_walk.cuh"
#include "gemm/hopper/groups/stored_tile.cuh"
#include "gemm/hopper/tile_store_params.cuh"

namespace tandem::cuda {

/// Applies a gated activation to a thread's sums. For each 8 rows it has two gates and their two ups.
template <int Count>
__device__ inline void gate_few_rows(Activation activation, const float (&sums)[Count], float (&to)[Count / 2]) {
#pragma unroll
  for (int i = 0; i < Count / 2; ++i) to[i] = sums[i / 2 * 4 + i % 2];
  activate(activation == Activation::kGeGlu ? Activation::kGelu : Activation::kSilu, to);
#pragma unroll
  for (int i = 0; i < Count / 2; ++i) to[i] *= sums[i / 2 * 4 + 2 + i % 2];
}

/// Bias: a type that TileStoreParams needs. Rows: of a tile. Derived is the store of a kernel, whose interface is that
/// of TileStore. Derived::store_rows(tile, row) enqueues the stores of the kBoxRows rows from `row` of the tile on.
template <class Derived, class Bias, int Rows, int SlotBytes>
class FewRowsTiles {
  static constexpr int kGroups = 2;
  static constexpr int kLead = 16;  // tiles that a warpgroup may be ahead: the mainloop's stages, and a few that leave

 public:
  using Table = PanelTable;
  using Params = TileStoreParams<Bias>;
  static constexpr int kSlices = 1;
  static constexpr int kMostPending = 0;
  static constexpr bool kLoadsScales = false;
  static constexpr int kRows = Rows;
  static constexpr int kBoxRows = 8;  ///< so C gets at most seven rows behind a panel's own
  struct alignas(1024) Slots {
    std::byte slot[kGroups][SlotBytes];
    cutlass::arch::ClusterBarrier ready[kGroups];
    cutlass::arch::ClusterBarrier written[kGroups];
    unsigned stored[kLead];
  };

  __device__ static void prefetch(const Params& params, const TileTable&) { prefetch_tensor_map(&params.c[0]); }

  /// Called by one thread, before a barrier of the block.
  __device__ static void prepare(Slots& slots) {
    for (int group = 0; group < kGroups; ++group) {
      slots.ready[group].init(1);
      slots.written[group].init(4);
    }
    for (unsigned& stored : slots.stored) stored = 0;
    cutlass::arch::fence_barrier_init();
  }

  /// Runs the storing warp's part by one thread, tile by tile.
  __device__ void store(const PanelTable& table, int, const GemmProfiler& profiler) {
    const int role = 2 + group_;
    for (TileWalk<PanelTable> walk(table); !walk.is_over(); walk.advance()) {
      const PanelTile tile = walk.tile();
      if (tile.is_empty()) continue;
      slots_.ready[group_].arrive();
      slots_.written[group_].wait(tiles_ % 2);
      const std::uint64_t begin = profiler.now();
      for (int row = 0; row < tile.rows; row += kBoxRows) static_cast<Derived*>(this)->store_rows(tile, row);
      wait_for_stores();
      profiler.add(role, {RecordKind::kStore, params_.to[0], SlotBytes}, begin);
      notify(tile, profiler, role);
      ++tiles_;
    }
  }

 protected:
  /// For thread `thread` of one warpgroup, or for the warp that stores its tiles.
  __device__ FewRowsTiles(const Params& params, Slots& slots, int group, int thread)
      : params_(params), group_(group), thread_(thread), slots_(slots) {}

  __device__ std::uint32_t slot() const { return shared_address(slots_.slot[group_]); }

  /// Hands a tile to the storing warp; put() writes the slot.
  template <class Put>
  __device__ void leave(const Put& put) {
    slots_.ready[group_].wait(tiles_ % 2);
    put();
    fence_shared_before_tma();
    __syncwarp();
    if (thread_ % 32 == 0) slots_.written[group_].arrive();
    ++tiles_;
  }

  /// Multiplies a thread's sums by the scales of rows and columns. They are those of 64 columns of B from `column` on.
  template <int Count>
  __device__ void scale(const PanelTile& tile, int column, float (&values)[Count]) const {
    const GemmScales& scales = params_.scales;
    if (scales.a == nullptr && scales.b == nullptr) return;
    const auto of_column = [&](int col) {
      if (scales.b == nullptr) return 1.0F;
      return __ldg(scales.b +
                   (scales.b_per_column ? Size{tile.group} * params_.n + min(col, params_.n - 1) : Size{tile.group}));
    };
    const int first = column + thread_ / 32 * 16 + thread_ % 32 / 4;
    const float of_columns[2] = {of_column(first), of_column(first + 8)};
#pragma unroll
    for (int i = 0; i < Count / 2; ++i) {
      const int row = min(tile.row + i / 2 * 8 + thread_ % 4 * 2 + i % 2, params_.m - 1);
      const float of_row = scales.a == nullptr ? 1.0F : __ldg(scales.a + (scales.a_per_row ? row : 0));
      values[i / 2 * 4 + i % 2] *= of_row * of_columns[0];
      values[i / 2 * 4 + 2 + i % 2] *= of_row * of_columns[1];
    }
  }

  const Params& params_;
  const int group_;
  const int thread_;
  unsigned tiles_ = 0;

 private:
  /// Called when the tile's stores of this warp are done. The later of the two warps sends the notification.
  __device__ void notify(const PanelTile& tile, const GemmProfiler& profiler, int role) {
    Signal* const word = params_.word[tile.number];
    if (word == nullptr) return;
    const std::uint64_t begin = profiler.now();
    if (!is_second_to_store(slots_.stored[tiles_ % kLead])) return;
    add_release(&word->value, 1);
    profiler.add(role, {RecordKind::kSignal, word, 1, static_cast<unsigned>(SignalOp::kAdd), 1}, begin);
  }

  Slots& slots_;
};

}  // namespace tandem::cuda
