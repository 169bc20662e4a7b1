#pragma once
/// The way of a tile of few rows of a grouped GEMM out of a block. Its product was computed transposed: each of two
/// warpgroups has 64 columns of B for all rows. Gates and ups of a gated activation are values of one thread.

#include "gemm/hopper/groups/few_rows_tiles.cuh"

namespace tandem::cuda {

/// Element is the type of C, 16 bits. Rows: of a tile, a multiple of 32. Scaled: the sums have scales.
template <class Element, int Rows, bool Scaled>
class FewRowsStore : public FewRowsTiles<FewRowsStore<Element, Rows, Scaled>, Element, Rows, Rows * 128> {
  using Tiles = FewRowsTiles<FewRowsStore<Element, Rows, Scaled>, Element, Rows, Rows * 128>;
  using Tiles::params_, Tiles::group_, Tiles::thread_;
  static constexpr int kGroupColumns = 64;  // of B
  static constexpr int kRowBytes = kGroupColumns * static_cast<int>(sizeof(Element));
  static constexpr int kValues = Tiles::kRows / 2;  // sums of a thread
  static_assert(kRowBytes == 128);

 public:
  using Storage = typename Tiles::Slots;
  using Params = typename Tiles::Params;
  static constexpr int kColumns = 2 * kGroupColumns;  ///< of B in a tile

  static Params params(const Gemm& gemm, const TileTable& table, const Context& context) {
    return tile_store_params<Element>(gemm, table, context, Tiles::kBoxRows,
                                      static_cast<int>(columns_after(gemm.activation, kGroupColumns)));
  }

  __device__ FewRowsStore(const Params& params, Storage& storage, int group, int thread)
      : Tiles(params, storage, group, thread),
        columns_(static_cast<int>(columns_after(params.activation, kGroupColumns))) {}

  template <class Sums>
  __device__ void write(const PanelTile& tile, const Sums& sums, bool) {
    float values[kValues];
#pragma unroll
    for (int i = 0; i < kValues; ++i) values[i] = sums(i);
    if constexpr (Scaled) Tiles::scale(tile, tile.column * kColumns + group_ * kGroupColumns, values);
    const float of_c = Scaled && params_.scales.c != nullptr ? __ldg(params_.scales.c) : 1.0F;
    if (is_gated(params_.activation)) {
      float gated[kValues / 2];
      gate_few_rows(params_.activation, values, gated);
      multiply(gated, of_c);
      Tiles::leave([&] { put_gated(gated); });
    } else {
      activate(params_.activation, values);
      multiply(values, of_c);
      Tiles::leave([&] { put(values); });
    }
  }

  /// Enqueues the stores of the eight rows from `row` on.
  __device__ void store_rows(const PanelTile& tile, int row) const {
    store_box(&params_.c[0], Tiles::slot() + static_cast<std::uint32_t>(row * columns_) * sizeof(Element),
              (tile.column * 2 + group_) * columns_, tile.row + row);
  }

 private:
  template <int Count>
  __device__ static void multiply(float (&values)[Count], float by) {
    if constexpr (Scaled) {
#pragma unroll
      for (float& value : values) value *= by;
    }
  }

  /// Transposes the values into the slot. For each 8 rows a thread has two neighbours of a column, and two of the
  /// eighth column after it. The 16-byte piece p of row r, which is 8 columns, is at place p ^ (r % 8).
  __device__ void put(const float (&values)[kValues]) const {
    const int lane = thread_ % 32;
    const int piece = thread_ / 32 * 2 + lane / 8 % 2;
#pragma unroll
    for (int j = 0; j < Tiles::kRows / 8; j += 2) {
      const int row = (j + lane / 16) * 8 + lane % 8;
      MatrixWords words;
#pragma unroll
      for (int i = 0; i < 4; ++i) words.word[i] = packed<Element>(values[j * 4 + i * 2], values[j * 4 + i * 2 + 1]);
      store_transposed_matrices(Tiles::slot() + static_cast<std::uint32_t>(row * kRowBytes + (piece ^ row % 8) * 16),
                                words);
    }
  }
  /// Does the same with the 32 columns of C. A row has four pieces, and piece p of row r is at place p ^ (r / 2 % 4).
  __device__ void put_gated(const float (&values)[kValues / 2]) const {
    const int piece = thread_ / 32;
#pragma unroll
    for (int first = 0; first < Tiles::kRows; first += 32) {
      const int row = first + thread_ % 32;
      MatrixWords words;
#pragma unroll
      for (int i = 0; i < 4; ++i)
        words.word[i] = packed<Element>(values[first / 4 + i * 2], values[first / 4 + i * 2 + 1]);
      store_transposed_matrices(
          Tiles::slot() + static_cast<std::uint32_t>(row * kRowBytes / 2 + (piece ^ row / 2 % 4) * 16), words);
    }
  }

  const int columns_;  // of C in a warpgroup
};

}  // namespace tandem::cuda
