#pragma once
/// The tile scheduler of the GEMM with hooks: clusters take the units of a TileTable in turn. The interface is that of
/// CUTLASS's own static schedulers (cutlass/gemm/kernel/static_tile_scheduler.hpp, 4.2).

#include <cutlass/cutlass.h>
#include <cutlass/gemm/kernel/tile_scheduler.hpp>

#include "gemm/tile_table.h"

namespace tandem::cuda {

class OrderedScheduler {
 public:
  static constexpr bool IsDynamicPersistent = false;
  using Params = TileTable;
  using Pipeline = cutlass::PipelineEmpty;
  using ThrottlePipeline = cutlass::PipelineEmpty;
  struct Arguments {};
  struct CLCResponse {};
  struct SharedStorage {
    __device__ Pipeline::SharedStorage pipeline() { return {}; }
    __device__ ThrottlePipeline::SharedStorage throttle_pipeline() { return {}; }
    __device__ CLCResponse* data() { return nullptr; }
  };

  /// CUTLASS hands these numbers on as a tile's coordinates; mainloop and epilogue read them as a TablePlace.
  struct WorkTileInfo {
    int M_idx = 0;
    int N_idx = 0;
    int L_idx = 0;
    bool valid = false;
    __device__ bool is_valid() const { return valid; }
    __device__ int reduction_subtile_idx() const { return -1; }
  };

  __device__ explicit OrderedScheduler(const Params& table)
      : table_(table),
        unit_(static_cast<int>(blockIdx.x) / table.cluster),
        step_(static_cast<int>(gridDim.x) / table.cluster) {}

  template <class ClusterShape>
  __device__ WorkTileInfo initial_work_tile_info(ClusterShape) {
    return current();
  }
  template <class... Pipelines>
  __device__ auto fetch_next_work(WorkTileInfo, Pipelines&&...) {
    unit_ += step_;
    return cute::make_tuple(current(), true);
  }

  /// The next kernel may then take its places (programmatic dependent launch).
  __device__ bool is_last_tile(const WorkTileInfo&) const { return unit_ + step_ >= table_.units; }

  __device__ static bool valid_warpgroup_in_work_tile(const WorkTileInfo&) { return true; }
  __device__ static bool requires_separate_reduction(const Params&) { return false; }
  __device__ static bool compute_epilogue(const WorkTileInfo&, const Params&) { return true; }
  template <class Accumulators>
  __device__ static void fixup(const Params&, const WorkTileInfo&, Accumulators&, std::uint32_t, std::uint32_t) {}
  template <class ProblemShape, class TileShape>
  __device__ static int get_work_k_tile_count(const WorkTileInfo&, ProblemShape problem, TileShape tile) {
    return cute::size(cute::ceil_div(cute::get<2>(problem), cute::get<2>(tile)));
  }
  __device__ static std::uint32_t get_work_k_tile_start(const WorkTileInfo&) { return 0; }

  /// A place in one number: pieces and panels share M_idx.
  static constexpr int kPanelBits = 24;
  __device__ static int piece_of(int m_idx) { return m_idx >> kPanelBits; }
  __device__ static int panel_of(int m_idx) { return m_idx & ((1 << kPanelBits) - 1); }

 private:
  __device__ WorkTileInfo current() {
    if (unit_ >= table_.units) return {};
    const TablePlace place = place_of(table_, unit_, static_cast<int>(blockIdx.x) % table_.cluster, piece_);
    piece_ = place.piece;
    return {(place.piece << kPanelBits) | place.panel, place.column, 0, true};
  }

  const Params& table_;
  int unit_;
  int step_;
  int piece_ = 0;
};

/// Selects it in GemmUniversal.
struct OrderedSchedulerTag {};

}  // namespace tandem::cuda

template <class ArchTag, class TileShape, class ClusterShape, std::uint32_t Stages>
struct cutlass::gemm::kernel::detail::TileSchedulerSelector<tandem::cuda::OrderedSchedulerTag, ArchTag, TileShape,
                                                            ClusterShape, Stages> {
  using Scheduler = tandem::cuda::OrderedScheduler;
};
