#pragma once
/// The way of a tile of few rows out of a block. Its product was computed transposed: each warpgroup has 64 columns of
/// C for all rows. The interface is that of TileStore, without shards and signals. The tile may first be added over all
/// PEs, and then normed. If blocks compute slices of the depth, two of them first add their slices.

#include <cutlass/arch/barrier.h>

#include "gemm/hopper/epilogue.cuh"
#include "gemm/hopper/gemm_profiler.cuh"
#include "gemm/hopper/host/tensor_map.h"
#include "gemm/hopper/row_norm.cuh"
#include "gemm/hopper/slice_sum.cuh"
#include "gemm/hopper/tile_walk.cuh"
#include "gemm/hopper/tma.cuh"

namespace tandem::cuda {

/// Element is the type of C, 16 bits. Rows are the rows of C in a tile, Groups the computing warpgroups, Slices those
/// of the depth. Normed: the sums over all PEs are normed (GemmNorm).
template <class Element, int Rows, int Groups, int Slices, bool Normed>
class TransposedStore {
  static constexpr int kCols = kSkinnyColumns;
  static constexpr int kRowBytes = kCols * static_cast<int>(sizeof(Element));
  static constexpr int kKept = Rows / Slices;                                   // rows that the block keeps
  static constexpr int kBoxRows = kKept < kSkinnyBlock ? kKept : kSkinnyBlock;  // rows that leave together
  static constexpr int kBoxes = kKept / kBoxRows;
  static_assert(kRowBytes == 128 && kKept % kBoxRows == 0 && kBoxRows % 16 == 0);
  static_assert(Slices == 1 || Slices == kSkinnySlices);
  static_assert(!Normed || (Groups == 1 && Slices == 1 && kBoxes == 1));
  using Norm = RowNorm<Element, Normed ? kKept : 16>;

 public:
  using Table = TileTable;
  static constexpr int kSlices = Slices;
  static constexpr int kMostPending = 0;  ///< a block has one tile
  static constexpr bool kLoadsScales = false;
  struct alignas(1024) PlainStorage {
    std::byte slot[Groups][kBoxRows * kRowBytes];
    cutlass::arch::ClusterBarrier ready[Groups];
    cutlass::arch::ClusterBarrier written[Groups];
  };
  struct NormedStorage : PlainStorage {
    typename Norm::Storage norm;
  };
  using Storage = std::conditional_t<Normed, NormedStorage, PlainStorage>;

  struct PlainParams {
    CUtensorMap c;
    const Element* bias;
    int n;
    Activation activation;
    DeviceSum sum;
  };
  struct NormedParams : PlainParams {
    typename Norm::Params norm;
  };
  using Params = std::conditional_t<Normed, NormedParams, PlainParams>;

  static Params params(const Gemm& gemm, const Context& context) {
    const PlainParams plain = plain_params(gemm, context);
    if constexpr (Normed)
      return {plain, Norm::params(gemm, kBoxRows, kCols)};
    else
      return plain;
  }
  static PlainParams plain_params(const Gemm& gemm, const Context& context) {
    const auto n = static_cast<int>(gemm.n);
    const GemmSum sum = gemm.destination.sum() != nullptr ? *gemm.destination.sum() : GemmSum{};
    return {tensor_map(gemm.destination.c(), gemm.out_type, gemm.m, gemm.n, kBoxRows, kCols),
            static_cast<const Element*>(gemm.bias),
            n,
            gemm.activation,
            {sum.exchange, sum.calls, n, static_cast<int>(gemm.m), context}};
  }

  __device__ static void prefetch(const Params& params, const TileTable&) { prefetch_tensor_map(&params.c); }

  /// Called by one thread, before a barrier of the block.
  __device__ static void prepare(Storage& storage) {
    for (int group = 0; group < Groups; ++group) {
      storage.ready[group].init(1);
      storage.written[group].init(4);
    }
    cutlass::arch::fence_barrier_init();
  }

  /// For thread `thread` of one warpgroup, or for the warp that stores its tiles.
  __device__ TransposedStore(const Params& params, Storage& storage, int group, int thread)
      : params_(params), storage_(storage), group_(group), thread_(thread) {}

  template <class Sums>
  __device__ void write(const WalkedTile& tile, const Sums& sums, bool) {
    const Pair bias = bias_of(col_of(tile) + thread_ / 32 * 16 + thread_ % 32 / 4);
    const auto biased = [&](int j, float value) { return value + (j % 4 < 2 ? bias.first : bias.second); };
    if (Slices == 1 && params_.sum.calls == nullptr) {
      each_box([&](Values& values, int box) {
#pragma unroll
        for (int j = 0; j < kValues; ++j) values[j] = biased(j, sums(box * kValues + j));
        activate(params_.activation, values);
      });
      return;
    }
    const int column = col_of(tile) / kCols;
    TransposedSum<Element, kKept> sum(params_.sum, column, first_row(tile), thread_);
    if constexpr (Normed) {
      write_normed(column, sum, [&](int j) { return biased(j, sums(j)); });
      return;
    }
    if constexpr (Slices == 1) {
      sum.template send<kKept / 2>([&](int j) { return biased(j, sums(j)); }, 0);
    } else {
      // A box travels to the peers while the next one is awaited.
      const SliceSum<Rows / 2, kValues> slice(params_.sum, column, tile.column, thread_, sums);
#pragma unroll
      for (int box = 0; box < kBoxes; ++box) {
        Values kept;
        slice.add_up(sums, box * kValues, kept);
        sum.template send<kValues>([&](int j) { return biased(j, kept[j]); }, box * kBoxRows / 16);
      }
    }
    each_box([&](Values& values, int box) {
      sum.complete(values, box * kBoxRows / 16, [&](Values& sums) { activate(params_.activation, sums); });
    });
  }

  __device__ void store(const TileTable& table, int, const GemmProfiler& profiler) {
    const int role = 2 + group_;
    for (TileWalk<Table> walk(table); !walk.is_over(); walk.advance()) {
      const WalkedTile tile = walk.tile();
      if (tile.is_empty()) continue;
      std::uint64_t begin = 0;
      for (int box = 0; box < boxes(); ++box, ++boxes_) {
        storage_.ready[group_].arrive();
        storage_.written[group_].wait(boxes_ % 2);
        if (box == 0) begin = profiler.now();
        if constexpr (Normed) {
          store_box(is_sum(box) ? &params_.norm.sum : &params_.c, shared_address(storage_.slot[group_]), col_of(tile),
                    0);
          wait_for_reads<0>();
          continue;
        }
        store_box(&params_.c, shared_address(storage_.slot[group_]), col_of(tile), first_row(tile) + box * kBoxRows);
        wait_for_reads<0>();
      }
      wait_for_stores();
      profiler.add(role, {RecordKind::kStore, nullptr, Size{kKept} * kRowBytes}, begin);
      if (params_.sum.calls != nullptr) count_calls(tile);
    }
  }

 private:
  static constexpr int kValues = kBoxRows / 2;  // values of a thread in a box
  using Values = float[kValues];

  /// Returns the boxes of a tile. The sums come before their norm.
  __device__ int boxes() const {
    if constexpr (Normed) return params_.norm.has_sum ? 2 : 1;
    return kBoxes;
  }
  __device__ bool is_sum(int box) const { return box + 1 < boxes(); }

  /// Adds the sums over all PEs, and norms them.
  template <class Sums>
  __device__ void write_normed(int column, TransposedSum<Element, kKept>& sum, const Sums& sums) {
    sum.template send<kKept / 2>(sums, 0);
    const Norm norm(params_.norm, storage_.norm, params_.sum, column, thread_);
    Values values;
    sum.complete(values, 0, [](Values&) {});
    norm.add_residual(values);
    if (params_.norm.has_sum) leave(values);
    norm.norm(values, sum.call());
    leave(values);
  }

  // Returns the first row of the block. Without slices there is one tile for all rows.
  __device__ int first_row(const WalkedTile& tile) const { return Slices == 1 ? 0 : tile.column * kKept; }
  __device__ int col_of(const WalkedTile& tile) const { return tile.row + group_ * kCols; }

  /// Counts a call for the tiles that this warpgroup added, after all PEs have read them.
  __device__ void count_calls(const WalkedTile& tile) const {
    const SkinnyExchange places(params_.sum.columns, params_.sum.context.team.size);
    for (int box = 0; box < kBoxes; ++box) {
      Epoch* const calls = params_.sum.calls + places.tile(col_of(tile) / kCols, first_row(tile) / kSkinnyBlock + box);
      *calls = load_relaxed(calls) + 1;
    }
  }

  /// Writes them box by box; fill(values, box) fills in the values.
  template <class Fill>
  __device__ void each_box(const Fill& fill) {
#pragma unroll
    for (int box = 0; box < kBoxes; ++box) {
      Values values;
      fill(values, box);
      leave(values);
    }
  }
  /// Hands a box to the storing warp.
  __device__ void leave(const Values& values) {
    storage_.ready[group_].wait(boxes_ % 2);
    put(shared_address(storage_.slot[group_]), values);
    fence_shared_before_tma();
    __syncwarp();
    if (thread_ % 32 == 0) storage_.written[group_].arrive();
    ++boxes_;
  }

  /// For each 8 rows of C a thread has two neighbours in column `col`, and two in the eighth column after it.
  __device__ Pair bias_of(int col) const {
    if (params_.bias == nullptr) return {0, 0};
    const auto of = [&](int c) { return c < params_.n ? static_cast<float>(params_.bias[c]) : 0.0F; };
    return {of(col), of(col + 8)};
  }

  /// Transposes the values into the slot. The 16-byte piece p of row r, which is 8 columns, is at place p ^ (r % 8).
  __device__ void put(std::uint32_t slot, const Values& values) const {
    const int lane = thread_ % 32;
    const int chunk = thread_ / 32 * 2 + lane / 8 % 2;
#pragma unroll
    for (int j = 0; j < kBoxRows / 8; j += 2) {
      const int row = (j + lane / 16) * 8 + lane % 8;
      const std::uint32_t at = slot + static_cast<std::uint32_t>(row * kRowBytes + (chunk ^ (row % 8)) * 16);
      MatrixWords words;
#pragma unroll
      for (int i = 0; i < 4; ++i) words.word[i] = packed<Element>(values[j * 4 + i * 2], values[j * 4 + i * 2 + 1]);
      store_transposed_matrices(at, words);
    }
  }

  const Params& params_;
  Storage& storage_;
  const int group_;
  const int thread_;
  unsigned boxes_ = 0;
};

}  // namespace tandem::cuda
