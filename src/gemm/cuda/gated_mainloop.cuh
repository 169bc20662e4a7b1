#pragma once
/// A CUTLASS mainloop whose loads pass the gate first, and take the own shard's rows from where the user has them.

#include "gemm/cuda/device_wait.cuh"
#include "gemm/cuda/gemm_recorder.cuh"
#include "gemm/cuda/tile_walk.cuh"
#include "gemm/cuda/tma.cuh"

namespace tandem::cuda {

/// The gate as the kernel reads it.
struct DeviceGate {
  GemmGate gate;
  int own = -1;  ///< shard that comes from `own_a`: never waited for
  int own_begin = 0;
  Context context;
};

template <class Base>
class GatedMainloop : public Base {
 public:
  using MainloopPipeline = typename Base::MainloopPipeline;
  using PipelineState = typename Base::PipelineState;
  using TensorStorage = typename Base::TensorStorage;

  struct Params {
    typename Base::Params gathered;
    typename Base::Params own;
    DeviceGate gate;
    CUtensorMap ahead;    ///< of A, in boxes of as many rows as a tile has
    int boxes_ahead = 0;  ///< that are brought to the L2 cache before the kernel may read what others write
  };

  __device__ static void prefetch_tma_descriptors(const Params& params) {
    Base::prefetch_tma_descriptors(params.gathered);
    if (params.gate.own >= 0) Base::prefetch_tma_descriptors(params.own);
  }

  /// The first boxes of A's rows `row` and below, to the L2 cache: a hint, right whatever is written there meanwhile.
  __device__ static void load_ahead(const Params& params, int row, int lane) {
    constexpr int kDepth = cute::size<2>(typename Base::TileShape{});
    for (int i = lane; i < params.boxes_ahead; i += 32) prefetch_box(&params.ahead, i * kDepth, row);
  }

  template <class ProblemShape>
  __device__ auto load_init(const ProblemShape& problem, const Params& params) const {
    return Base::load_init(problem, params.gathered);
  }

  /// The producer warp's share of one tile.
  template <class TensorA, class TensorB>
  __device__ void load(const Params& params, const WalkedTile& tile, MainloopPipeline pipeline, PipelineState state,
                       const cute::tuple<TensorA, TensorB>& inputs, int k_tiles, int lane, std::uint32_t block_rank,
                       TensorStorage& storage, const GemmRecorder& recorder) {
    const bool own = tile.piece->owner == params.gate.own;
    if (!own && params.gate.gate.words != nullptr && passed_ != tile.piece->slot)
      pass_gate(params.gate, tile, lane, recorder);
    // Tiles begin at any row: a shard's size is no multiple of a tile's.
    const int row = own ? tile.row - params.gate.own_begin : tile.row;
    const auto rows = cute::domain_offset(cute::make_coord(row, 0, 0, 0, 0), cute::get<0>(inputs));
    const auto at = cute::make_coord(0, tile.column, cute::_, 0);
    Base::load(own ? params.own : params.gathered, pipeline, state, cute::make_tuple(rows, cute::get<1>(inputs)), at,
               cute::make_coord_iterator(cute::shape<3>(rows)), k_tiles, lane, block_rank, storage);
  }

  /// A warpgroup's share of one tile.
  template <class Accumulators>
  __device__ void mma(MainloopPipeline pipeline, PipelineState state, Accumulators& accumulators, int count, int thread,
                      TensorStorage& storage, const Params& params) {
    Base::mma(pipeline, state, accumulators, count, thread, storage, params.gathered);
  }

 private:
  __device__ void pass_gate(const DeviceGate& gate, const WalkedTile& tile, int lane, const GemmRecorder& recorder) {
    const Signal* const word = gate.gate.words + tile.piece->slot;
    const Epoch expected = load_relaxed(gate.gate.epoch) * static_cast<Epoch>(gate.gate.arrivals);
    const std::uint64_t begin = recorder.now();
    wait_before_tma(gate.context, word, expected);
    passed_ = tile.piece->slot;
    if (lane == 0) recorder.add(1, {RecordKind::kWait, word, expected, static_cast<unsigned>(Cmp::kGe), 1}, begin);
    __syncwarp();
  }

  int passed_ = -1;  // slot of the piece whose gate was passed last
};

}  // namespace tandem::cuda
