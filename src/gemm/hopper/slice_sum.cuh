#pragma once
/// Addition of the sums of two blocks that each computed a slice of the depth, in f32. Each keeps one half of the rows
/// and gives the other half to the other block. As between PEs (TransposedSum), a word that is not zero has arrived,
/// and its reader sets it to zero again. One place is enough, because the next kernel writes when this one is complete.

#include "gemm/hopper/transposed_sum.cuh"

namespace tandem::cuda {

/// Count is the number of a thread's sums in its slice. Part is the number of kept sums that are added together.
template <int Count, int Part>
class SliceSum {
  static constexpr int kKept = Count / kSkinnySlices;
  static constexpr int kVectors = kKept / 4;
  static constexpr int kOfPart = Part / 4;  // vectors
  static constexpr int kStep = SkinnyExchange::kThreads * SkinnyExchange::kVector;
  static_assert(Size{kVectors} * kStep <= SkinnyExchange::kSliceBytes && kKept % Part == 0);

 public:
  /// For one thread of the 128 of column `column` of tiles. It gives its half of `sums` to the other slice.
  template <class Sums>
  __device__ SliceSum(const DeviceSum& sum, int column, int slice, int thread, const Sums& sums)
      : context_(sum.context), is_first_(slice == 0) {
    const SkinnyExchange places(sum.columns, sum.context.team.size);
    std::byte* const here = sum.exchange.local() + thread * SkinnyExchange::kVector;
    mine_ = here + places.slice_place(column, slice);
    std::byte* const theirs = here + places.slice_place(column, 1 - slice);
    // Earlier contents belong to the previous call.
    wait_for_previous_grid();
#pragma unroll
    for (int i = 0; i < kVectors; ++i) {
      Vector given;
#pragma unroll
      for (int w = 0; w < 4; ++w) {
        const float value = is_first_ ? sums(kKept + i * 4 + w) : sums(i * 4 + w);
        given.word[w] = value == 0 ? kZero : __float_as_uint(value);
      }
      store_words(theirs + i * kStep, given);
    }
  }

  /// Adds the sums of both slices, for the kept sums from the `first`-th on.
  template <class Sums>
  __device__ void add_up(const Sums& sums, int first, float (&kept)[Part]) const {
    Vector found[kOfPart];
    std::byte* const from = mine_ + first / 4 * kStep;
    Watchdog watchdog(context_);
    for (bool is_here = false; !is_here;) {
      is_here = true;
#pragma unroll
      for (int i = 0; i < kOfPart; ++i) {
        found[i] = load_words(from + i * kStep);
#pragma unroll
        for (int w = 0; w < 4; ++w) is_here = is_here && found[i].word[w] != 0;
      }
      if (!is_here && watchdog.is_due() && watchdog.is_over_without_call(from, 1, 0)) break;
    }
#pragma unroll
    for (int i = 0; i < kOfPart; ++i) {
      store_words(from + i * kStep, Vector{0, 0, 0, 0});
#pragma unroll
      for (int w = 0; w < 4; ++w) {
        const int at = first + i * 4 + w;
        kept[i * 4 + w] = (is_first_ ? sums(at) : sums(kKept + at)) + __uint_as_float(found[i].word[w]);
      }
    }
  }

 private:
  static constexpr std::uint32_t kZero = 0x80000000U;

  const Context& context_;
  const bool is_first_;
  std::byte* mine_;
};

}  // namespace tandem::cuda
