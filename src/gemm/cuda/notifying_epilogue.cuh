#pragma once
/// A CUTLASS epilogue that stores each tile where its owner wants it and sends a notification once it is visible there.
/// In a chain it adds what the next PE has sent of the tile.

#include "gemm/cuda/device_wait.cuh"
#include "gemm/cuda/ordered_scheduler.cuh"

namespace tandem::cuda {

/// What the chain brings, as the kernel reads it.
struct DeviceChain {
  const Signal* arrived = nullptr;  ///< [slot]; null: no chain
  const Epoch* epoch = nullptr;
  int first_owner = -1;  ///< whose sums begin here: nothing is added to them
  Context context;
};

template <class Base>
class NotifyingEpilogue : public Base {
 public:
  using LoadPipeline = typename Base::LoadPipeline;
  using LoadPipelineState = typename Base::LoadPipelineState;
  using StorePipeline = typename Base::StorePipeline;
  using StorePipelineState = typename Base::StorePipelineState;
  using TensorStorage = typename Base::TensorStorage;

  struct Params {
    typename Base::Params shard[kMostShards];  ///< by owner: its rows, which clip its last tiles
    int shard_begin[kMostShards];
    Signal* word[kMostPieces];  ///< by the piece's place in the table; null: nobody is told
    TileTable table;
    DeviceChain chain;
    std::uint32_t tma_transaction_bytes = Base::TmaTransactionBytes;
  };

  __device__ static void prefetch_tma_descriptors(const Params& params) {
    Base::prefetch_tma_descriptors(params.shard[params.table.pieces[0].owner]);
  }

  __device__ NotifyingEpilogue(const Params& params, TensorStorage& storage)
      : Base(params.shard[0], storage), params_(params) {}

  __device__ bool is_producer_load_needed() const { return params_.chain.arrived != nullptr; }

  /// The epilogue's loading warp: brings what is to be added to one tile.
  template <class ProblemShape, class TileShape, class Coordinate, class TiledMma>
  __device__ auto load(LoadPipeline pipeline, LoadPipelineState state, ProblemShape problem, TileShape tile,
                       Coordinate coordinate, TiledMma mma, int thread, TensorStorage& storage, int subtile) {
    const Place place = place_of(coordinate);
    const int owner = place.piece->owner;
    if (place.row >= place.piece->end || owner == params_.chain.first_owner) return state;
    const Epoch tiles = static_cast<Epoch>((place.piece->end - place.piece->begin + params_.table.tile_m - 1) /
                                           params_.table.tile_m * params_.table.columns);
    wait_before_tma(params_.chain.context, params_.chain.arrived + place.piece->slot,
                    load_relaxed(params_.chain.epoch) * tiles);
    __syncwarp();
    return Base(params_.shard[owner], storage)
        .load(pipeline, state, problem, tile, place.in_shard(coordinate), mma, thread, storage, subtile);
  }

  template <class ProblemShape, class TileShape, class Coordinate, class Accumulators, class TiledMma>
  __device__ auto store(LoadPipeline load, LoadPipelineState load_state, StorePipeline store,
                        StorePipelineState store_state, ProblemShape problem, TileShape tile, Coordinate coordinate,
                        Accumulators accumulators, TiledMma mma, int thread, TensorStorage& storage, int subtile) {
    notify();  // the last tile's stores had this tile's whole main loop to arrive: nothing waits here
    const Place place = place_of(coordinate);
    if (place.row >= place.piece->end) return cute::make_tuple(load_state, store_state);  // it only helped its cluster
    const auto states = Base(params_.shard[place.piece->owner], storage)
                            .store(load, load_state, store, store_state, problem, tile, place.in_shard(coordinate),
                                   accumulators, mma, thread, storage, subtile);
    if (thread < cutlass::NumThreadsPerWarp) pending_ = params_.word[place.number];  // the warp that issues TMA stores
    return states;
  }

  __device__ auto store_tail(LoadPipeline load, LoadPipelineState load_state, StorePipeline store,
                             StorePipelineState store_state) {
    notify();
    return Base::store_tail(load, load_state, store, store_state);
  }

 private:
  struct Place {
    const TablePiece* piece;
    int number;  // of the piece
    int row;
    int panel;  // within the owner's shard
    template <class Coordinate>
    __device__ auto in_shard(const Coordinate& coordinate) const {
      return cute::make_coord(panel, cute::get<1>(coordinate), cute::_, 0);
    }
  };

  template <class Coordinate>
  __device__ Place place_of(const Coordinate& coordinate) const {
    const int m_idx = cute::get<0>(coordinate);
    const int number = OrderedScheduler::piece_of(m_idx);
    const TablePiece& piece = params_.table.pieces[number];
    const int row = piece.begin + OrderedScheduler::panel_of(m_idx) * params_.table.tile_m;
    return {&piece, number, row, (row - params_.shard_begin[piece.owner]) / params_.table.tile_m};
  }

  /// Sends the last tile's notification. It waits for the stores themselves, not only until shared memory was read.
  __device__ void notify() {
    if (pending_ == nullptr) return;
    asm volatile("cp.async.bulk.wait_group 0;" ::: "memory");
    fence_proxy_async();
    __syncwarp();
    if (threadIdx.x % cutlass::NumThreadsPerWarp == 0) add_release(&pending_->value, 1);
    pending_ = nullptr;
  }

  const Params& params_;
  Signal* pending_ = nullptr;
};

}  // namespace tandem::cuda
