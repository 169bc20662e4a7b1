#pragma once
/// A CUTLASS mainloop whose loads pass the gate first, and take the own shard's rows from where the user has them.

#include "gemm/cuda/device_wait.cuh"
#include "gemm/cuda/ordered_scheduler.cuh"

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
    TileTable table;
    DeviceGate gate;
    std::uint32_t tma_transaction_bytes = Base::TmaTransactionBytes;
  };

  __device__ static void prefetch_tma_descriptors(const Params& params) {
    Base::prefetch_tma_descriptors(params.gathered);
    if (params.gate.own >= 0) Base::prefetch_tma_descriptors(params.own);
  }

  template <class ProblemShape>
  __device__ auto load_init(const ProblemShape& problem, const Params& params) const {
    return Base::load_init(problem, params.gathered);
  }

  /// The producer warp's share of one tile.
  template <class TensorA, class TensorB, class KTiles, class Coordinate>
  __device__ void load(const Params& params, MainloopPipeline pipeline, PipelineState state,
                       const cute::tuple<TensorA, TensorB>& inputs, const Coordinate& coordinate, KTiles k_tiles,
                       int count, int thread, std::uint32_t block_rank, TensorStorage& storage) {
    const int m_idx = cute::get<0>(coordinate);
    const TablePiece& piece = params.table.pieces[OrderedScheduler::piece_of(m_idx)];
    int row = piece.begin + OrderedScheduler::panel_of(m_idx) * params.table.tile_m;
    const bool own = piece.owner == params.gate.own;
    if (own) row -= params.gate.own_begin;
    if (!own && params.gate.gate.words != nullptr && passed_ != piece.slot) {
      wait_before_tma(params.gate.context, params.gate.gate.words + piece.slot,
                      load_relaxed(params.gate.gate.epoch) * static_cast<Epoch>(params.gate.gate.arrivals));
      passed_ = piece.slot;
      __syncwarp();
    }
    // Tiles begin at any row: a shard's size is no multiple of a tile's.
    const auto rows = cute::domain_offset(cute::make_coord(row, 0, 0, 0, 0), cute::get<0>(inputs));
    const auto at = cute::make_coord(0, cute::get<1>(coordinate), cute::_, 0);
    Base::load(own ? params.own : params.gathered, pipeline, state, cute::make_tuple(rows, cute::get<1>(inputs)), at,
               k_tiles, count, thread, block_rank, storage);
  }

  template <class Accumulators>
  __device__ void mma(MainloopPipeline pipeline, PipelineState state, Accumulators& accumulators, int count, int thread,
                      TensorStorage& storage, const Params& params) {
    Base::mma(pipeline, state, accumulators, count, thread, storage, params.gathered);
  }

 private:
  int passed_ = -1;  // slot of the piece whose gate was passed last
};

}  // namespace tandem::cuda
