#pragma once
/// How a tile of few rows leaves a block: its product was computed transposed, 64 columns of C for all of its rows, by
/// one warpgroup. The interface is that of TileStore; there are no shards, and nobody is told. It may be added up over
/// all PEs first.

#include <cutlass/arch/barrier.h>

#include "gemm/cuda/finish.cuh"
#include "gemm/cuda/gemm_recorder.cuh"
#include "gemm/cuda/tensor_map.h"
#include "gemm/cuda/tile_walk.cuh"
#include "gemm/cuda/tma.cuh"
#include "gemm/cuda/transposed_sum.cuh"

namespace tandem::cuda {

/// Element: of C, 16 bits. Rows: of C in a tile.
template <class Element, int Rows>
class TransposedStore {
  static constexpr int kCols = 64;
  static constexpr int kRowBytes = kCols * static_cast<int>(sizeof(Element));
  static constexpr int kBoxRows = Rows < 64 ? Rows : 64;  // that leave together
  static constexpr int kBoxes = Rows / kBoxRows;
  static_assert(kRowBytes == 128 && Rows % kBoxRows == 0 && kBoxRows % 16 == 0);

 public:
  struct alignas(1024) Storage {
    std::byte slot[kBoxRows * kRowBytes];
    cutlass::arch::ClusterBarrier ready;
    cutlass::arch::ClusterBarrier written;
  };

  struct Params {
    CUtensorMap c;
    const Element* bias;
    int n;
    Activation activation;
    DeviceSum sum;
  };

  static Params params(const Gemm& gemm, const Context& context) {
    const auto n = static_cast<int>(gemm.n);
    return {tensor_map(gemm.c, gemm.out_type, gemm.m, gemm.n, kBoxRows, kCols),
            static_cast<const Element*>(gemm.bias),
            n,
            gemm.activation,
            {gemm.sum.exchange, gemm.sum.calls, n, static_cast<int>(gemm.m), context}};
  }

  __device__ static void prefetch(const Params& params, const TileTable&) { prefetch_tensor_map(&params.c); }

  /// By one thread, before a barrier of the block.
  __device__ static void prepare(Storage& storage) {
    storage.ready.init(1);
    storage.written.init(4);
    cutlass::arch::fence_barrier_init();
  }

  __device__ TransposedStore(const Params& params, Storage& storage, int) : params_(params), storage_(storage) {}

  template <class Sums>
  __device__ void write(const WalkedTile& tile, const Sums& sums, int thread) {
    const Pair bias = bias_of(tile.row + thread / 32 * 16 + thread % 32 / 4);
    const auto biased = [&](int j) { return sums(j) + (j % 4 < 2 ? bias.first : bias.second); };
    if (params_.sum.calls != nullptr) {
      const TransposedSum<Element, Rows> sum(params_.sum, tile.row / kCols, thread, biased);
      each_box(thread, [&](Values& values, int box) { sum.add_up(values, box * kBoxRows / 16); });
    } else {
      each_box(thread, [&](Values& values, int box) {
#pragma unroll
        for (int j = 0; j < kBoxRows / 2; ++j) values[j] = biased(box * (kBoxRows / 2) + j);
      });
    }
  }

  __device__ void store(const TileTable& table, int, const GemmRecorder& recorder) {
    for (TileWalk walk(table); !walk.is_over(); walk.advance()) {
      const WalkedTile tile = walk.tile();
      if (tile.is_empty()) continue;
      std::uint64_t begin = 0;
      for (int box = 0; box < kBoxes; ++box, ++boxes_) {
        storage_.ready.arrive();
        storage_.written.wait(boxes_ % 2);
        if (box == 0) begin = recorder.now();
        store_box(&params_.c, shared_address(storage_.slot), tile.row, tile.column * Rows + box * kBoxRows);
        wait_for_reads<0>();
      }
      wait_for_stores();
      recorder.add(2, {RecordKind::kStore, nullptr, Size{Rows} * kRowBytes}, begin);
      if (Epoch* const calls = params_.sum.calls; calls != nullptr)  // which everybody has read
        calls[tile.row / kCols] = load_relaxed(calls + tile.row / kCols) + 1;
    }
  }

 private:
  using Values = float[kBoxRows / 2];  // of a thread in a box

  /// Activates and writes them box by box; fill(values, box) gives them.
  template <class Fill>
  __device__ void each_box(int thread, const Fill& fill) {
#pragma unroll
    for (int box = 0; box < kBoxes; ++box, ++boxes_) {
      Values values;
      fill(values, box);
      activate(params_.activation, values);
      storage_.ready.wait(boxes_ % 2);
      put(shared_address(storage_.slot), values, thread);
      fence_shared_before_tma();
      __syncwarp();
      if (thread % 32 == 0) storage_.written.arrive();
    }
  }

  /// Of each 8 rows of C a thread has two neighbours in column `col`, and two in the eighth column behind it.
  __device__ Pair bias_of(int col) const {
    if (params_.bias == nullptr) return {0, 0};
    const auto of = [&](int c) { return c < params_.n ? static_cast<float>(params_.bias[c]) : 0.0F; };
    return {of(col), of(col + 8)};
  }

  /// Transposes them into the slot: 16-byte piece p of row r, which is 8 columns, is at place p ^ (r % 8).
  __device__ static void put(std::uint32_t slot, const Values& values, int thread) {
    const int lane = thread % 32;
    const int piece = thread / 32 * 2 + lane / 8 % 2;
#pragma unroll
    for (int j = 0; j < kBoxRows / 8; j += 2) {
      const int row = (j + lane / 16) * 8 + lane % 8;
      const std::uint32_t at = slot + static_cast<std::uint32_t>(row * kRowBytes + (piece ^ (row % 8)) * 16);
      MatrixWords words;
#pragma unroll
      for (int i = 0; i < 4; ++i) words.word[i] = packed<Element>(values[j * 4 + i * 2], values[j * 4 + i * 2 + 1]);
      store_transposed_matrices(at, words);
    }
  }

  const Params& params_;
  Storage& storage_;
  unsigned boxes_ = 0;
};

}  // namespace tandem::cuda
