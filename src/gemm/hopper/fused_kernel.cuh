#pragma once
/// The persistent kernel of the fused GEMM. Warps of a block's first warpgroup load tiles of A and B, load scales, and
/// store tiles of C. One or two other warpgroups compute, each 64 rows of every tile. Each of them has a storing warp.

#include <cutlass/arch/grid_dependency_control.h>
#include <cutlass/arch/reg_reconfig.h>

#include "gemm/hopper/gated_mainloop.cuh"

namespace tandem::cuda {

template <class Mainloop, class Store>
class FusedKernel {
  static constexpr int kGroup = 128;
  using Pipeline = typename Mainloop::MainloopPipeline;
  using TiledMma = typename Mainloop::TiledMma;
  using Cluster = typename Mainloop::DispatchPolicy::ClusterShape;
  using TileShape = typename Mainloop::TileShape;
  using Table = typename Store::Table;
  using Walk = TileWalk<Table>;
  static constexpr int kGroups = static_cast<int>(cute::size(TiledMma{})) / kGroup;  // computing warpgroups
  static_assert(kGroups == 1 || kGroups == 2);
  // Three warpgroups start with 168 registers a thread. Threads with few sums leave more to those that load and store.
  static constexpr int kSums =
      static_cast<int>(cute::size<0>(TileShape{}) * cute::size<1>(TileShape{})) / kGroup / kGroups;
  static constexpr int kLoadRegisters = kSums <= 32 ? 72 : 40;
  static constexpr int kComputeRegisters = (3 * 168 - kLoadRegisters) / 2;

 public:
  static constexpr int kThreads = (1 + kGroups) * kGroup;
  struct Params {
    int m, n, k;
    typename Mainloop::Params mainloop;
    typename Store::Params store;
    Table table;
    RecordArea record;
  };
  struct Storage {
    typename Store::Storage store;
    alignas(1024) typename Mainloop::TensorStorage mainloop;
    alignas(16) typename Mainloop::PipelineStorage pipeline;
    RecordCount records;
  };

  __device__ static void run(const Params& params, Storage& storage) {
    const int group = cutlass::canonical_warp_group_idx();
    const int warp = cutlass::canonical_warp_idx_sync();
    const int lane = static_cast<int>(threadIdx.x) % 32;
    if (threadIdx.x == 0) {
      Mainloop::prefetch_tma_descriptors(params.mainloop);
      Store::prefetch(params.store, params.table);
      Store::prepare(storage.store);
      storage.records = {0, 0};
    }
    Pipeline pipeline(storage.pipeline, pipeline_params(group, warp), Cluster{});
    cute::cluster_arrive();
    cute::cluster_wait();
    const GemmProfiler profiler(params.record, &storage.records);
    const std::uint64_t begin = profiler.now();
    if (group > 0) {
      if constexpr (kGroups == 2) cutlass::arch::warpgroup_reg_alloc<kComputeRegisters>();
      // Computing threads that read no table and no scales of blocks read nothing before the loads have arrived.
      if constexpr (Table::kOnDevice || Mainloop::kBegins) wait_for_previous_grid();
      compute(params, storage, pipeline, group - 1, profiler);
    } else {
      if constexpr (kGroups == 2) cutlass::arch::warpgroup_reg_dealloc<kLoadRegisters>();
      // No memory may be accessed that the previous kernel may still write.
      if (warp == 0) {
        if constexpr (!Table::kOnDevice) {
          const WalkedTile first = Walk(params.table).tile();
          Mainloop::load_ahead(params.mainloop, first.row, steps_of(params, first).first, lane);
        }
        wait_for_previous_grid();
        load(params, storage, pipeline, lane, profiler);
      } else if (Store::kLoadsScales && warp == 1) {
        wait_for_previous_grid();
        if constexpr (Store::kLoadsScales) Store(params.store, storage.store, 0, lane).load_scales(params.table);
      } else if (warp >= 2 && warp < 2 + kGroups && cute::elect_one_sync()) {
        wait_for_previous_grid();
        Store(params.store, storage.store, warp - 2, 0).store(params.table, cute::size<0>(TileShape{}), profiler);
      }
    }
    if (!profiler.is_on()) return;
    __syncthreads();
    if (threadIdx.x == 0) profiler.finish(begin);
  }

 private:
  __device__ static typename Pipeline::Params pipeline_params(int group, int warp) {
    typename Pipeline::Params own{};
    if (group > 0) own.role = Pipeline::ThreadCategory::Consumer;
    if (warp == 0) own.role = Pipeline::ThreadCategory::Producer;
    own.is_leader = threadIdx.x % kGroup == 0;
    own.num_consumers = kGroups * kGroup;
    own.num_producers = Mainloop::NumProducerThreadEvents;
    own.transaction_bytes = Mainloop::TmaTransactionBytes;
    return own;
  }

  /// If blocks compute slices of the depth, the table has a column for each slice.
  __device__ static Steps steps_of(const Params& params, const WalkedTile& tile) {
    if constexpr (Table::kIsStreamK) return tile.steps;
    const int all = cute::ceil_div(params.k, static_cast<int>(cute::size<2>(TileShape{})));
    if constexpr (Store::kSlices == 1) return {0, all};
    const int of_slice = (all + Store::kSlices - 1) / Store::kSlices;
    const int first = tile.column * of_slice;
    return {first, cute::min(of_slice, all - first)};
  }

  __device__ static void load(const Params& params, Storage& storage, Pipeline& pipeline, int lane,
                              const GemmProfiler& profiler) {
    Mainloop mainloop;
    const auto inputs = mainloop.load_init(cute::make_shape(params.m, params.n, params.k, 1), params.mainloop);
    auto state = cutlass::make_producer_start_state<Pipeline>();
    for (Walk walk(params.table); !walk.is_over(); walk.advance()) {
      const auto tile = walk.tile();
      const Steps steps = steps_of(params, tile);
      mainloop.load(params.mainloop, tile, Store::kSlices == 1 ? tile.column : 0, steps, pipeline, state, inputs, lane,
                    cute::block_rank_in_cluster(), storage.mainloop, profiler);
      state.advance(steps.count);
    }
    // The next kernel may take this one's SMs (programmatic dependent launch). If all work ends with the last tile, it
    // may do so already now.
    if constexpr (kGroups == 1) cutlass::arch::launch_dependent_grids();
    mainloop.load_tail(pipeline, state);  // a block outlives its cluster's writes to it
  }

  __device__ static void compute(const Params& params, Storage& storage, Pipeline& pipeline, int group,
                                 const GemmProfiler& profiler) {
    const int thread = static_cast<int>(threadIdx.x) - kGroup;
    Store store(params.store, storage.store, group, thread % kGroup);
    if constexpr (Store::kMostPending > 0)
      compute_ahead(params, storage, pipeline, store, thread, profiler);
    else
      compute_in_turn(params, storage, pipeline, store, thread, profiler);
  }

  __device__ static void compute_in_turn(const Params& params, Storage& storage, Pipeline& pipeline, Store& store,
                                         int thread, const GemmProfiler& profiler) {
    Mainloop mainloop;
    typename Mainloop::PipelineState state;
    for (Walk walk(params.table); !walk.is_over(); walk.advance()) {
      const auto tile = walk.tile();
      const int count = steps_of(params, tile).count;
      const std::uint64_t begin = profiler.now();
      if constexpr (Mainloop::kBegins) mainloop.begin(params.mainloop, tile, thread);
      auto sums = cute::partition_fragment_C(TiledMma{}, cute::take<0, 2>(TileShape{}));
      mainloop.mma(pipeline, state, sums, count, thread, storage.mainloop, params.mainloop, store);
      state.advance(count);
      if (kGroups == 2 && walk.is_last()) cutlass::arch::launch_dependent_grids();
      if (tile.is_empty()) continue;
      if (thread == 0) profiler.add(0, {RecordKind::kCompute}, begin);
      store.write(tile, sums, false);
    }
  }

  /// The same for a store that writes tiles late. The next tile is found beside the last step of this one: the search
  /// has divisions, which would delay that tile's first step.
  __device__ static void compute_ahead(const Params& params, Storage& storage, Pipeline& pipeline, Store& store,
                                       int thread, const GemmProfiler& profiler) {
    Mainloop mainloop;
    typename Mainloop::PipelineState state;
    Walk walk(params.table);
    bool over = walk.is_over();
    if (over) return;
    for (auto tile = walk.tile(), next = tile; !over; tile = next) {
      const int count = steps_of(params, tile).count;
      const std::uint64_t begin = profiler.now();
      store.begin(tile);
      if constexpr (Mainloop::kBegins) mainloop.begin(params.mainloop, tile, thread);
      auto sums = cute::partition_fragment_C(TiledMma{}, cute::take<0, 2>(TileShape{}));
      const auto look_ahead = [&] {
        if (walk.is_last()) cutlass::arch::launch_dependent_grids();
        walk.advance();
        over = walk.is_over();
        if (!over) next = walk.tile();
      };
      mainloop.mma_ahead(pipeline, state, sums, count, thread, storage.mainloop, store, look_ahead);
      state.advance(count);
      // Each tile counts once, for the block that completes it.
      if (thread == 0 && !tile.is_empty() && !tile.gives()) profiler.add(0, {RecordKind::kCompute}, begin);
      finish(store, tile, sums, !over && count >= Store::kMostPending);
    }
  }

  /// Hands the sums of a tile, or of a part of its depth, on. `later`: see TileStore::write.
  template <class Tile, class Sums>
  __device__ static void finish(Store& store, const Tile& tile, Sums& sums, bool later) {
    if (tile.is_empty()) return;
    if constexpr (Table::kIsStreamK) {
      if (tile.gives()) return store.give(tile, sums);
      if (tile.others > 0) store.add_others(tile, sums);
    }
    store.write(tile, sums, later);
  }
};

template <class Kernel>
__global__ void __launch_bounds__(Kernel::kThreads, 1)
    fused_gemm(const __grid_constant__ typename Kernel::Params params) {
  extern __shared__ __align__(1024) unsigned char memory[];
  Kernel::run(params, *reinterpret_cast<typename Kernel::Storage*>(memory));
}

}  // namespace tandem::cuda
