#pragma once
/// The loads of a grouped GEMM: each panel has its own B. The two blocks of a cluster compute neighbouring columns of
/// one panel, and each loads half of its rows of A for both.

#include "gemm/hopper/gated_mainloop.cuh"
#include "gemm/hopper/panel_walk.cuh"

namespace tandem::cuda {

/// Gathers: rows of A have an index, and each is a box of its own.
template <class Base, bool Gathers>
class GroupedMainloop : public GatedMainloop<Base> {
  using Gated = GatedMainloop<Base>;

 public:
  using MainloopPipeline = typename Gated::MainloopPipeline;
  using PipelineState = typename Gated::PipelineState;
  using TensorStorage = typename Gated::TensorStorage;
  using TileShape = typename Base::TileShape;

  struct Params : Gated::Params {
    int words = 0;                         ///< of the gate, for which each panel waits
    const std::int32_t* a_rows = nullptr;  ///< [m]
    int m = 0;
    CUtensorMap row;  ///< A in boxes of one row
  };

  __device__ static void prefetch_tma_descriptors(const Params& params) {
    Gated::prefetch_tma_descriptors(params);
    if constexpr (Gathers) prefetch_tensor_map(&params.row);
  }

  /// The producer warp's share of one tile in column `column`.
  template <class TensorA, class TensorB>
  __device__ void load(const Params& params, const PanelTile& tile, int column, Steps steps, MainloopPipeline pipeline,
                       PipelineState state, const cute::tuple<TensorA, TensorB>& inputs, int lane,
                       std::uint32_t block_rank, TensorStorage& storage, const GemmProfiler& profiler) {
    pass_gates(params, tile, lane, profiler);
    if constexpr (Gathers) {
      load_rows(params, tile, column, steps, pipeline, state, cute::get<1>(inputs), lane, static_cast<int>(block_rank),
                storage);
    } else {
      // Base::load takes one coordinate for the groups of A and B, and A has one group.
      const auto rows = cute::domain_offset(cute::make_coord(tile.row, 0, 0, 0, -tile.group), cute::get<0>(inputs));
      const auto depth = cute::shape<3>(rows);
      Base::load(params.gathered, pipeline, state, cute::make_tuple(rows, cute::get<1>(inputs)),
                 cute::make_coord(0, column, cute::_, tile.group),
                 cute::make_coord_iterator(cute::idx2crd(steps.first, depth), depth), steps.count, lane, block_rank,
                 storage);
    }
  }

 private:
  static constexpr int kBlocks = 2;  // of a cluster
  static constexpr int kDepth = cute::size<2>(TileShape{});
  static constexpr int kRows = cute::size<0>(TileShape{}) / kBlocks;  // that this block loads
  static constexpr int kRowsOfLane = kRows / 32;

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

  /// Each lane loads some rows of A for both blocks, and the first lane loads B. In shared memory a row of A takes the
  /// 128 bytes that the swizzle permutes by their address, so boxes of one row give the layout of a box of all rows.
  template <class TensorB>
  __device__ static void load_rows(const Params& params, const PanelTile& tile, int column, Steps steps,
                                   MainloopPipeline& pipeline, PipelineState state, const TensorB& all_b, int lane,
                                   int rank, TensorStorage& storage) {
    using cute::_;
    static_assert(kDepth * sizeof(*storage.smem_A.data()) == 128 && kRows % 32 == 0);
    int row[kRowsOfLane];
#pragma unroll
    for (int i = 0; i < kRowsOfLane; ++i) {
      const int at = tile.row + rank * kRows + i * 32 + lane;
      row[i] = at < params.m ? __ldg(params.a_rows + at) : -1;
    }
    const auto b_tiles = cute::make_tensor(cute::make_smem_ptr(storage.smem_B.data()), typename Base::SmemLayoutB{});
    const auto tma_b = params.gathered.tma_load_b.get_slice(0);
    const auto from = tma_b.partition_S(all_b(_, _, column, _, tile.group));
    const auto to = tma_b.partition_D(b_tiles);
    for (int i = 0; i < steps.count; ++i, ++state) {
      const int step = steps.first + i;
      if (lane == 0) pipeline.producer_acquire(state);
      __syncwarp();
      auto* const barrier = pipeline.producer_get_barrier(state);
      const std::uint32_t stage = shared_address(storage.smem_A.data()) +
                                  static_cast<std::uint32_t>((state.index() * kBlocks + rank) * kRows * 128);
      if (lane == 0)
        cute::copy(params.gathered.tma_load_b.with(*barrier, 0), from(_, _, _, step), to(_, _, _, state.index()));
#pragma unroll
      for (int r = 0; r < kRowsOfLane; ++r)
        load_box_to_blocks(&params.row, stage + static_cast<std::uint32_t>((r * 32 + lane) * 128), step * kDepth,
                           row[r], barrier, 3);
    }
  }

  int passed_ = -1;  // first word of the panel whose gate was passed last
};

}  // namespace tandem::cuda
