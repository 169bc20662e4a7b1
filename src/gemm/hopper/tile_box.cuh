#pragma once
/// A box of a tile, 64 rows by some columns, between the registers of a warpgroup and shared memory, from which TMA
/// stores.

#include "gemm/hopper/epilogue.cuh"
#include "gemm/hopper/tma.cuh"

namespace tandem::cuda {

/// A thread's sums of 64 columns in the layout of wgmma ("Register Fragments" of wgmma.mma_async in the PTX ISA). For
/// each 8 columns it has two neighbours of one row, and two of the eighth row below it.
///
/// `slot` is the box's address, `thread` the number within the warpgroup.
template <class Element, int kCols>
struct TileBox {
  static constexpr bool kIsFp8 = sizeof(Element) == 1;
  static constexpr int kPieces = kCols * static_cast<int>(sizeof(Element)) / 16;  // 16-byte pieces in a row
  static constexpr int kPairs = kCols / 4;  ///< pairs of sums of a thread, each one register after rounding

  /// Writes a thread's sums to the box. With `adds` they are added to its contents.
  __device__ static void put(std::uint32_t slot, int thread, const float (&values)[kCols / 2], bool adds) {
    const int lane = thread % 32;
    if constexpr (kIsFp8) {
      const int row = thread / 32 * 16 + lane / 4;  // and the eighth row below it, whose pieces have the same places
#pragma unroll
      for (int j = 0; j < kCols / 8; ++j) {
        const std::uint32_t at = slot + offset_of(row, j / 2) + static_cast<std::uint32_t>(j % 2 * 8 + lane % 4 * 2);
        store_pair(at, packed<Element>(values[j * 4], values[j * 4 + 1]));
        store_pair(at + 8 * kCols, packed<Element>(values[j * 4 + 2], values[j * 4 + 3]));
      }
    } else {
      const int row = thread / 32 * 16 + lane % 16;
#pragma unroll
      for (int j = 0; j < kCols / 8; j += 2) {
        const std::uint32_t at = slot + offset_of(row, j + lane / 16);
        MatrixWords words;
        if (adds) words = load_matrices(at);
#pragma unroll
        for (int i = 0; i < 4; ++i) {
          const Pair addend = adds ? unpacked<Element>(words.word[i]) : Pair{0, 0};
          words.word[i] =
              packed<Element>(values[j * 4 + i * 2] + addend.first, values[j * 4 + i * 2 + 1] + addend.second);
        }
        store_matrices(at, words);
      }
    }
  }

  /// Does the same with rounded sums.
  __device__ static void put_pairs(std::uint32_t slot, int thread, const std::uint32_t (&pairs)[kPairs]) {
    const int lane = thread % 32;
    const int row = thread / 32 * 16 + lane % 16;
#pragma unroll
    for (int j = 0; j < kPairs; j += 4)
      store_matrices(slot + offset_of(row, j / 2 + lane / 16), {pairs[j], pairs[j + 1], pairs[j + 2], pairs[j + 3]});
  }

  /// Reads a thread's part of the contents, unconverted.
  __device__ static void take(std::uint32_t slot, int thread, std::uint32_t (&pairs)[kPairs]) {
    const int row = thread / 32 * 16 + thread % 16;
#pragma unroll
    for (int j = 0; j < kPairs; j += 4) {
      const MatrixWords words = load_matrices(slot + offset_of(row, j / 2 + thread % 32 / 16));
#pragma unroll
      for (int i = 0; i < 4; ++i) pairs[j + i] = words.word[i];
    }
  }

  /// Adds the contents to a thread's sums.
  __device__ static void add(std::uint32_t slot, int thread, float (&values)[kCols / 2]) {
    const int row = thread / 32 * 16 + thread % 16;
#pragma unroll
    for (int j = 0; j < kCols / 8; j += 2) {
      const MatrixWords words = load_matrices(slot + offset_of(row, j + thread % 32 / 16));
#pragma unroll
      for (int i = 0; i < 4; ++i) {
        const Pair addend = unpacked<Element>(words.word[i]);
        values[j * 4 + i * 2] += addend.first;
        values[j * 4 + i * 2 + 1] += addend.second;
      }
    }
  }

 private:
  /// Returns the place of a 16-byte piece of a row under the tensor map's swizzle. Eight rows of 128 bytes, or sixteen
  /// of 64, go through all places.
  __device__ static std::uint32_t offset_of(int row, int chunk) {
    return static_cast<std::uint32_t>((row * kPieces + (chunk ^ (row * kPieces / 8 % kPieces))) * 16);
  }
};

}  // namespace tandem::cuda
