#pragma once
/// The way of a tile of few rows of a grouped GEMM out of a block. Its product was computed transposed: each of two
/// warpgroups has 64 columns for all rows. Gates and ups of a gated activation are values of one thread.

#include <cutlass/arch/barrier.h>

#include "gemm/hopper/epilogue.cuh"
#include "gemm/hopper/gemm_profiler.cuh"
#include "gemm/hopper/groups/panel_walk.cuh"
#include "gemm/hopper/stored_tile.cuh"
#include "gemm/hopper/tile_store_params.cuh"

namespace tandem::cuda {

/// Element is the type of C, 16 bits. Rows are the rows of a tile. The interface is that of TileStore.
template <class Element, int Rows>
class FewRowsStore {
  static constexpr int kGroups = 2;
  static constexpr int kCols = 64;  // columns of the product in a warpgroup
  static constexpr int kRowBytes = kCols * static_cast<int>(sizeof(Element));
  static constexpr int kValues = Rows / 2;  // sums of a thread
  static constexpr int kLead = 16;  // tiles that a warpgroup may be ahead: the mainloop's stages, and a few that leave
  static_assert(Rows == 32 && sizeof(Element) == 2);

 public:
  using Table = PanelTable;
  using Params = TileStoreParams<Element>;
  static constexpr int kSlices = 1;
  static constexpr int kMostPending = 0;
  static constexpr int kBoxRows = 8;  ///< so C gets at most seven rows behind a panel's own
  struct alignas(1024) Storage {
    std::byte slot[kGroups][Rows * kRowBytes];
    cutlass::arch::ClusterBarrier ready[kGroups];
    cutlass::arch::ClusterBarrier written[kGroups];
    unsigned stored[kLead];
  };

  static Params params(const Gemm& gemm, const TileTable& table, const Context& context) {
    return tile_store_params<Element>(gemm, table, context, kBoxRows,
                                      static_cast<int>(columns_after(gemm.activation, kCols)));
  }

  __device__ static void prefetch(const Params& params, const TileTable&) { prefetch_tensor_map(&params.c[0]); }

  /// Called by one thread, before a barrier of the block.
  __device__ static void prepare(Storage& storage) {
    for (int group = 0; group < kGroups; ++group) {
      storage.ready[group].init(1);
      storage.written[group].init(4);
    }
    for (unsigned& stored : storage.stored) stored = 0;
    cutlass::arch::fence_barrier_init();
  }

  /// For thread `thread` of one warpgroup, or for the warp that stores its tiles.
  __device__ FewRowsStore(const Params& params, Storage& storage, int group, int thread)
      : params_(params), storage_(storage), group_(group), thread_(thread) {}

  template <class Sums>
  __device__ void write(const PanelTile&, const Sums& sums, bool) {
    float values[kValues];
#pragma unroll
    for (int i = 0; i < kValues; ++i) values[i] = sums(i);
    storage_.ready[group_].wait(tiles_ % 2);
    if (is_gated(params_.activation)) {
      put_gated(shared_address(storage_.slot[group_]), values);
    } else {
      activate(params_.activation, values);
      put(shared_address(storage_.slot[group_]), values);
    }
    fence_shared_before_tma();
    __syncwarp();
    if (thread_ % 32 == 0) storage_.written[group_].arrive();
    ++tiles_;
  }

  /// Runs the storing warp's part by one thread, tile by tile.
  __device__ void store(const PanelTable& table, int, const GemmProfiler& profiler) {
    const int role = 2 + group_;
    const int cols = static_cast<int>(columns_after(params_.activation, kCols));
    const std::uint32_t slot = shared_address(storage_.slot[group_]);
    for (TileWalk<PanelTable> walk(table); !walk.is_over(); walk.advance()) {
      const PanelTile tile = walk.tile();
      if (tile.is_empty()) continue;
      storage_.ready[group_].arrive();
      storage_.written[group_].wait(tiles_ % 2);
      const std::uint64_t begin = profiler.now();
      for (int row = 0; row < tile.rows; row += kBoxRows)
        store_box(&params_.c[0], slot + static_cast<std::uint32_t>(row * cols) * sizeof(Element),
                  (tile.column * kGroups + group_) * cols, tile.row + row);
      wait_for_stores();
      profiler.add(role,
                   {RecordKind::kStore, params_.to[0], static_cast<std::uint64_t>(tile.rows * cols) * sizeof(Element)},
                   begin);
      notify(tile, profiler, role);
      ++tiles_;
    }
  }

 private:
  /// Transposes the values into the slot. For each 8 rows a thread has two neighbours of a column, and two of the
  /// eighth column after it. The 16-byte piece p of row r, which is 8 columns, is at place p ^ (r % 8).
  __device__ void put(std::uint32_t slot, const float (&values)[kValues]) const {
    const int lane = thread_ % 32;
    const int piece = thread_ / 32 * 2 + lane / 8 % 2;
#pragma unroll
    for (int j = 0; j < Rows / 8; j += 2) {
      const int row = (j + lane / 16) * 8 + lane % 8;
      MatrixWords words;
#pragma unroll
      for (int i = 0; i < 4; ++i) words.word[i] = packed<Element>(values[j * 4 + i * 2], values[j * 4 + i * 2 + 1]);
      store_transposed_matrices(slot + static_cast<std::uint32_t>(row * kRowBytes + (piece ^ row % 8) * 16), words);
    }
  }
  /// Does the same with the 32 columns of C. A row has four pieces, and piece p of row r is at place p ^ (r / 2 % 4).
  __device__ void put_gated(std::uint32_t slot, const float (&sums)[kValues]) const {
    float values[kValues / 2];
    gate(params_.activation, sums, values);
    const int row = thread_ % 32;
    const int piece = thread_ / 32;
    MatrixWords words;
#pragma unroll
    for (int i = 0; i < 4; ++i) words.word[i] = packed<Element>(values[i * 2], values[i * 2 + 1]);
    store_transposed_matrices(slot + static_cast<std::uint32_t>(row * kRowBytes / 2 + (piece ^ row / 2 % 4) * 16),
                              words);
  }
  /// For each 8 rows a thread has two gates and their two ups.
  __device__ static void gate(Activation activation, const float (&sums)[kValues], float (&to)[kValues / 2]) {
#pragma unroll
    for (int i = 0; i < kValues / 2; ++i) to[i] = sums[i / 2 * 4 + i % 2];
    activate(activation == Activation::kGeGlu ? Activation::kGelu : Activation::kSilu, to);
#pragma unroll
    for (int i = 0; i < kValues / 2; ++i) to[i] *= sums[i / 2 * 4 + 2 + i % 2];
  }

  /// Called when the tile's stores of this warp are done. The later of the two warps sends the notification.
  __device__ void notify(const PanelTile& tile, const GemmProfiler& profiler, int role) {
    Signal* const word = params_.word[tile.number];
    if (word == nullptr) return;
    const std::uint64_t begin = profiler.now();
    if (!is_second_to_store(storage_.stored[tiles_ % kLead])) return;
    add_release(&word->value, 1);
    profiler.add(role, {RecordKind::kSignal, word, 1, static_cast<unsigned>(SignalOp::kAdd), 1}, begin);
  }

  const Params& params_;
  Storage& storage_;
  const int group_;
  const int thread_;
  unsigned tiles_ = 0;
};

}  // namespace tandem::cuda
