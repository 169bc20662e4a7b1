#pragma once
/// A CUTLASS mainloop whose loads wait for the gate first, and read the own shard's rows from the user's memory. For
/// 16-bit types the computing warps also write the previous tile, and load the addend of this one, while the tensor
/// cores are busy.

#include "gemm/hopper/device_wait.cuh"
#include "gemm/hopper/gemm_profiler.cuh"
#include "gemm/hopper/tile_walk.cuh"
#include "gemm/hopper/tma.cuh"
#include "tandem/impl/cuda/ending.cuh"

namespace tandem::cuda {

/// The gate as the kernel reads it.
struct DeviceGate {
  GemmGate gate;
  int own = -1;  ///< shard that is read from `own_a` without a wait
  int own_begin = 0;
  Context context;
};

template <class Base>
class GatedMainloop : public Base {
 public:
  using MainloopPipeline = typename Base::MainloopPipeline;
  using PipelineState = typename Base::PipelineState;
  using TensorStorage = typename Base::TensorStorage;
  static constexpr bool kBegins = false;  ///< whether begin() is called before the steps of a tile

  struct Params {
    typename Base::Params gathered;
    typename Base::Params own;
    DeviceGate gate;
    CUtensorMap ahead;    ///< A in boxes with the rows of a tile
    int boxes_ahead = 0;  ///< boxes that are prefetched to the L2 cache before the kernel may read other kernels' data
  };

  __device__ static void prefetch_tma_descriptors(const Params& params) {
    Base::prefetch_tma_descriptors(params.gathered);
    if (params.gate.own >= 0) Base::prefetch_tma_descriptors(params.own);
  }

  /// Prefetches steps from `first` on of A's rows from `row` on to the L2 cache. It is a hint, and correct even if the
  /// rows are written meanwhile.
  __device__ static void load_ahead(const Params& params, int row, int first, int lane) {
    constexpr int kDepth = cute::size<2>(typename Base::TileShape{});
    for (int i = lane; i < params.boxes_ahead; i += 32) prefetch_box(&params.ahead, (first + i) * kDepth, row);
  }

  template <class ProblemShape>
  __device__ auto load_init(const ProblemShape& problem, const Params& params) const {
    return Base::load_init(problem, params.gathered);
  }

  /// The producer warp's share of one tile in column `column`.
  template <class TensorA, class TensorB>
  __device__ void load(const Params& params, const WalkedTile& tile, int column, Steps steps, MainloopPipeline pipeline,
                       PipelineState state, const cute::tuple<TensorA, TensorB>& inputs, int lane,
                       std::uint32_t block_rank, TensorStorage& storage, const GemmProfiler& profiler) {
    const bool own = tile.chunk->owner == params.gate.own;
    if (!own && params.gate.gate.words != nullptr && passed_ != tile.chunk->slot)
      pass_gate(params.gate, tile, lane, profiler);
    // Tiles start at any row: a shard's size need not be a multiple of a tile's.
    const int row = own ? tile.row - params.gate.own_begin : tile.row;
    const auto rows = cute::domain_offset(cute::make_coord(row, 0, 0, 0, 0), cute::get<0>(inputs));
    const auto at = cute::make_coord(0, column, cute::_, 0);
    const auto depth = cute::shape<3>(rows);
    Base::load(own ? params.own : params.gathered, pipeline, state, cute::make_tuple(rows, cute::get<1>(inputs)), at,
               cute::make_coord_iterator(cute::idx2crd(steps.first, depth), depth), steps.count, lane, block_rank,
               storage);
  }

  /// A warpgroup's part of one tile.
  template <class Sums, class Store>
  __device__ void mma(MainloopPipeline pipeline, PipelineState state, Sums& sums, int count, int thread,
                      TensorStorage& storage, const Params& params, Store&) {
    static_assert(Store::kMostPending == 0);
    Base::mma(pipeline, state, sums, count, thread, storage, params.gathered);
    Base::mma_tail(pipeline, state, count);
  }

  /// The same for a store that writes late. While a step is computed, it writes a part of the previous tile. Before a
  /// wait for data that has not arrived, it writes all of it. look_ahead() is called beside the last step.
  template <class Sums, class Store, class LookAhead>
  __device__ void mma_ahead(MainloopPipeline pipeline, PipelineState state, Sums& sums, int count, int thread,
                            TensorStorage& storage, Store& store, const LookAhead& look_ahead) {
    const auto token = pipeline.consumer_try_wait(state);
    // All four warps take the branch or none, because they share the store's slots and the tensor cores'
    // instructions.
    if (any_of_group(thread / kGroup, token.get() != cutlass::BarrierStatus::WaitDone)) store.write_pending();
    const auto between = [&](int left) { store.use_step(left); };
    interleaved_mma(pipeline, state, sums, count, thread, storage, between, look_ahead);
  }

 private:
  static constexpr int kGroup = 128;  // threads

  /// Returns whether the condition holds for any thread of warpgroup `group`. It is a barrier of the group.
  __device__ static bool any_of_group(int group, bool holds) {
    constexpr int kFirst = 8;  // CUTLASS uses the barriers below
    const unsigned any = named_barrier_or(kFirst + group, kGroup, holds) ? 1 : 0;
    return __shfl_sync(~0U, any, 0) != 0;  // from one lane, like TileStore's pending boxes
  }

  /// between(left) is called after each step was issued to the tensor cores; `left` steps follow.
  template <class Sums, class Between, class LookAhead>
  __device__ static void interleaved_mma(MainloopPipeline& pipeline, PipelineState state, Sums& sums, int count,
                                         int thread, TensorStorage& storage, const Between& between,
                                         const LookAhead& look_ahead) {
    using cute::_;
    const auto a_tiles = cute::make_tensor(cute::make_smem_ptr(storage.smem_A.data()), typename Base::SmemLayoutA{});
    const auto b_tiles = cute::make_tensor(cute::make_smem_ptr(storage.smem_B.data()), typename Base::SmemLayoutB{});
    typename Base::TiledMma mma;
    const auto part = mma.get_slice(__shfl_sync(0xFFFFFFFFU, thread / kGroup, 0) * kGroup);
    const auto a = part.make_fragment_A(part.partition_A(a_tiles));
    const auto b = part.make_fragment_B(part.partition_B(b_tiles));
    const auto step = [&] {
      pipeline.consumer_wait(state, pipeline.consumer_try_wait(state));
      cute::warpgroup_fence_operand(sums);
      cute::warpgroup_arrive();
#pragma unroll
      for (int i = 0; i < cute::size<2>(a); ++i) {
        cute::gemm(mma, a(_, _, i, state.index()), b(_, _, i, state.index()), sums);
        mma.accumulate_ = cute::GMMA::ScaleOut::One;
      }
      cute::warpgroup_commit_batch();
      ++state;
    };
    PipelineState done = state;
    mma.accumulate_ = cute::GMMA::ScaleOut::Zero;
    step();
    between(count - 1);
#pragma unroll 1
    for (int i = 1; i < count; ++i) {
      step();
      between(count - 1 - i);
      cute::warpgroup_wait<1>();
      cute::warpgroup_fence_operand(sums);
      pipeline.consumer_release(done);
      ++done;
    }
    look_ahead();
    cute::warpgroup_wait<0>();
    cute::warpgroup_fence_operand(sums);
    pipeline.consumer_release(done);
  }

  __device__ void pass_gate(const DeviceGate& gate, const WalkedTile& tile, int lane, const GemmProfiler& profiler) {
    const Signal* const word = gate.gate.words + tile.chunk->slot;
    const Epoch expected = load_relaxed(gate.gate.epoch) * static_cast<Epoch>(gate.gate.arrivals);
    const std::uint64_t begin = profiler.now();
    wait_before_tma(gate.context, word, expected);
    passed_ = tile.chunk->slot;
    if (lane == 0) profiler.add(1, {RecordKind::kWait, word, expected, static_cast<unsigned>(Cmp::kGe), 1}, begin);
    __syncwarp();
  }

  int passed_ = -1;  // slot of the chunk whose gate was passed last
};

}  // namespace tandem::cuda
