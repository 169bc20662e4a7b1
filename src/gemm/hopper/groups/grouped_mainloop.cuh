#pragma once
/// The loads of a grouped GEMM: each panel has its own B. The two blocks of a cluster compute two panels in one column
/// of tiles, or one panel in two columns. Each block loads half of the operand that they share, for both.

#include "gemm/hopper/gated_mainloop.cuh"
#include "gemm/hopper/groups/panel_walk.cuh"

namespace tandem::cuda {

/// Returns whether any rows of a panel are those of a thread's warpgroup, which has half of the tile's. The value comes
/// from one lane, so that the compiler sees that a warp's threads agree.
template <int TileRows>
__device__ inline bool has_rows(const PanelTile& tile, int thread) {
  constexpr int kGroup = 128;  // threads
  return __shfl_sync(~0U, !tile.is_empty() && thread / kGroup * (TileRows / 2) < tile.rows, 0);
}
/// Without groups a warpgroup computes all its rows.
template <int>
__device__ inline bool has_rows(const WalkedTile&, int) {
  return true;
}

/// Gives the stages of some steps back as soon as they have arrived.
template <class Pipeline, class State>
__device__ void pass_steps(Pipeline& pipeline, State state, int count) {
#pragma unroll 1
  for (int i = 0; i < count; ++i, ++state) {
    pipeline.consumer_wait(state, pipeline.consumer_try_wait(state));
    pipeline.consumer_release(state);
  }
}

template <class Base>
class GroupedMainloop : public GatedMainloop<Base> {
  using Gated = GatedMainloop<Base>;

 public:
  using MainloopPipeline = typename Gated::MainloopPipeline;
  using PipelineState = typename Gated::PipelineState;
  using TensorStorage = typename Gated::TensorStorage;
  using TileShape = typename Base::TileShape;
  static constexpr bool kBegins = true;
  static constexpr int kBoxRowsOfA = cute::size<0>(TileShape{}) / 2;
  static constexpr int kBoxRowsOfB = cute::size<1>(TileShape{}) / 2;
  static constexpr int kDepth = cute::size<2>(TileShape{});

  struct Params : Gated::Params {
    CUtensorMap a;  ///< in boxes of half of a tile's rows
    CUtensorMap b;  ///< all groups' rows, likewise
    int n = 0;
    int words = 0;  ///< of the gate, for which each panel waits
  };

  __device__ static void prefetch_tma_descriptors(const Params& params) {
    prefetch_tensor_map(&params.a);
    prefetch_tensor_map(&params.b);
  }

  /// The loads need no tensors of CUTLASS.
  template <class ProblemShape>
  __device__ int load_init(const ProblemShape&, const Params&) const {
    return 0;
  }

  /// The producer warp's share of one tile in column `column`. A column's last rows of B may be those of the next
  /// group. Their results lie behind C's columns and are not stored.
  __device__ void load(const Params& params, const PanelTile& tile, int column, Steps steps, MainloopPipeline pipeline,
                       PipelineState state, int, int lane, std::uint32_t block_rank, TensorStorage& storage,
                       const GemmProfiler& profiler) {
    pass_gates(params, tile, lane, profiler);
    if (!cute::elect_one_sync()) return;
    const int half = static_cast<int>(block_rank);
    const int row_of_b = tile.group * params.n + column * 2 * kBoxRowsOfB;
    for (int i = steps.first; i < steps.first + steps.count; ++i, ++state) {
      pipeline.producer_acquire(state);
      const void* const barrier = pipeline.producer_get_barrier(state);
      const Boxes a = boxes(params.a, storage.smem_A.data(), tile.row, kBoxRowsOfA, state.index());
      const Boxes b = boxes(params.b, storage.smem_B.data(), row_of_b, kBoxRowsOfB, state.index());
      if (tile.in_panel)
        load_step(a, b, half, i * kDepth, barrier);
      else
        load_step(b, a, half, i * kDepth, barrier);
    }
  }

  /// Called by each computing thread before the steps of a tile.
  __device__ void begin(const Params&, const PanelTile& tile, int thread) {
    has_rows_ = has_rows<2 * kBoxRowsOfA>(tile, thread);
  }

  /// As GatedMainloop's. A warpgroup whose rows are all behind the panel's leaves the tensor cores to the other one.
  template <class Sums, class Store, class LookAhead>
  __device__ void mma_ahead(MainloopPipeline pipeline, PipelineState state, Sums& sums, int count, int thread,
                            TensorStorage& storage, Store& store, const LookAhead& look_ahead) {
    if (has_rows_) return Gated::mma_ahead(pipeline, state, sums, count, thread, storage, store, look_ahead);
    store.write_pending();
    pass_steps(pipeline, state, count);
    look_ahead();
  }

 protected:
  static constexpr int kRowBytes = 128;  // the rows of a box, which the swizzle permutes

  /// All lanes of the producer warp wait for the rows of the tile's panel.
  __device__ void pass_gates(const Params& params, const PanelTile& tile, int lane, const GemmProfiler& profiler) {
    const GemmGate& gate = params.gate.gate;
    if (gate.words == nullptr || passed_ == tile.word) return;
    for (const Signal* word = gate.words + tile.word; word < gate.words + tile.word + params.words; ++word) {
      const Epoch expected = load_relaxed(gate.epoch) * static_cast<Epoch>(gate.arrivals);
      const std::uint64_t begin = profiler.now();
      wait_before_tma(params.gate.context, word, expected);
      if (lane == 0) profiler.add(1, {RecordKind::kWait, word, expected, static_cast<unsigned>(Cmp::kGe), 1}, begin);
    }
    passed_ = tile.word;
    __syncwarp();
  }

 private:
  /// The two boxes of a step of A or B.
  struct Boxes {
    const CUtensorMap* map;
    std::uint32_t place;  ///< in shared memory
    int row;
    int rows;  ///< of a box
    __device__ std::uint32_t place_of(int half) const {
      return place + static_cast<std::uint32_t>(half * rows * kRowBytes);
    }
  };
  __device__ static Boxes boxes(const CUtensorMap& map, const void* stages, int row, int rows, int stage) {
    return {&map, shared_address(stages) + static_cast<std::uint32_t>(stage * 2 * rows * kRowBytes), row, rows};
  }
  /// Loads a half of what the cluster shares, for both blocks, and all of the other operand.
  __device__ static void load_step(const Boxes& shared, const Boxes& own, int half, int depth, const void* barrier) {
    load_box_to_blocks(shared.map, shared.place_of(half), depth, shared.row + half * shared.rows, barrier, 3);
    load_box(own.map, own.place_of(0), depth, own.row, barrier);
    load_box(own.map, own.place_of(1), depth, own.row + own.rows, barrier);
  }

  bool has_rows_ = true;  // this thread's warpgroup in the present tile
  int passed_ = -1;       // first word of the panel whose gate was passed last
};

}  // namespace tandem::cuda
