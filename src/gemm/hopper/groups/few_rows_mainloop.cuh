#pragma once
/// The loads of a grouped GEMM with few rows in each group. The product is computed transposed. The rows of a group's B
/// are the rows of the tensor cores' instructions, and a panel's rows of A are their columns.

#include "gemm/hopper/groups/grouped_mainloop.cuh"

namespace tandem::cuda {

/// Base: a mainloop for tiles with (columns of B, rows of C, depth), without clusters.
template <class Base>
class FewRowsMainloop : public GroupedMainloop<Base> {
  using Grouped = GroupedMainloop<Base>;

 public:
  using MainloopPipeline = typename Grouped::MainloopPipeline;
  using PipelineState = typename Grouped::PipelineState;
  using TensorStorage = typename Grouped::TensorStorage;
  using TileShape = typename Base::TileShape;
  static constexpr bool kBegins = false;
  static constexpr int kCols = cute::size<0>(TileShape{});
  static constexpr int kRows = cute::size<1>(TileShape{});
  static constexpr int kStepDepth = cute::size<2>(TileShape{});
  static constexpr int kBoxDepth = Grouped::kRowBytes / static_cast<int>(sizeof(typename Base::ElementA));
  static constexpr int kLeastRows = 8;
  /// Boxes of A have kLeastRows << i rows, up to kRows.
  static constexpr int kBoxSizes = cute::log_2(static_cast<unsigned>(kRows / kLeastRows)) + 1;
  static_assert(kLeastRows << (kBoxSizes - 1) == kRows && kStepDepth % kBoxDepth == 0);
  static_assert(cute::size(typename Base::DispatchPolicy::ClusterShape{}) == 1);

  /// Bytes that every step expects. A's bytes depend on the panel.
  static constexpr std::uint32_t TmaTransactionBytes = kCols * kStepDepth * sizeof(typename Base::ElementA);

  struct Params : Grouped::Params {
    CUtensorMap rows_of_a[kBoxSizes];  ///< `a` is not used
  };

  __device__ static void prefetch_tma_descriptors(const Params& params) {
    prefetch_tensor_map(&params.b);
    for (const CUtensorMap& map : params.rows_of_a) prefetch_tensor_map(&map);
  }

  /// The producer warp's share of one tile in column `column`. A column's last rows of B may be those of the next
  /// group, as in GroupedMainloop. Rows of A behind the box keep older values, which change rows of C behind the
  /// panel's only.
  __device__ void load(const Params& params, const PanelTile& tile, int column, Steps steps, MainloopPipeline pipeline,
                       PipelineState state, int, int lane, std::uint32_t, TensorStorage& storage,
                       const GemmProfiler& profiler) {
    Grouped::pass_gates(params, tile, lane, profiler);
    if (!cute::elect_one_sync()) return;
    int size = 0;
    while (kLeastRows << size < tile.rows) ++size;
    const auto bytes_of_a = static_cast<std::uint32_t>((kLeastRows << size) * kBoxes * Grouped::kRowBytes);
    const CUtensorMap* const map_of_a = &params.rows_of_a[size];
    const int row_of_b = tile.group * params.n + column * kCols;
    const std::uint32_t a = shared_address(storage.smem_B.data());
    const std::uint32_t b = shared_address(storage.smem_A.data());
    for (int i = steps.first; i < steps.first + steps.count; ++i, ++state) {
      pipeline.producer_acquire(state);
      pipeline.producer_expect_transaction(state, bytes_of_a);
      const void* const barrier = pipeline.producer_get_barrier(state);
#pragma unroll
      for (int box = 0; box < kBoxes; ++box) {
        const int place = state.index() * kBoxes + box;
        const int depth = i * kStepDepth + box * kBoxDepth;
        load_box(&params.b, b + place * kCols * Grouped::kRowBytes, depth, row_of_b, barrier);
        load_box(map_of_a, a + place * kRows * Grouped::kRowBytes, depth, tile.row, barrier);
      }
    }
  }

 private:
  static constexpr int kBoxes = kStepDepth / kBoxDepth;  // of a step
};

}  // namespace tandem::cuda
