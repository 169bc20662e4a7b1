#pragma once
/// How the two blocks that computed a slice of the depth each add up their sums, in f32: each keeps one half of the
/// rows, and gives the other block the other half. As between PEs (TransposedSum) a word that is not zero has arrived,
/// and who has read it makes it zero again. One place is enough: the next kernel writes when this one is complete.

#include "gemm/cuda/transposed_sum.cuh"

namespace tandem::cuda {

/// Count: of a thread's sums in its slice.
template <int Count>
class SliceSum {
  static constexpr int kKept = Count / kFewRowsSlices;
  static constexpr int kVectors = kKept / 4;
  static constexpr int kStep = FewRowsExchange::kThreads * FewRowsExchange::kVector;
  static_assert(Size{kVectors} * kStep <= FewRowsExchange::kSliceBytes);

 public:
  /// For one thread of the 128 of column `column` of tiles: `kept` gets the sums of both slices.
  template <class Sums>
  __device__ static void add_up(const DeviceSum& sum, int column, int slice, int thread, const Sums& sums,
                                float (&kept)[kKept]) {
    const FewRowsExchange places(sum.columns, sum.context.team.size);
    std::byte* const here = sum.exchange.local() + thread * FewRowsExchange::kVector;
    std::byte* const mine = here + places.slice_place(column, slice);
    std::byte* const theirs = here + places.slice_place(column, 1 - slice);
    // What was here belongs to the call before.
    cutlass::arch::wait_on_dependent_grids();
#pragma unroll
    for (int i = 0; i < kVectors; ++i) {
      Vector given;
#pragma unroll
      for (int w = 0; w < 4; ++w) {
        const float value = slice == 0 ? sums(kKept + i * 4 + w) : sums(i * 4 + w);
        kept[i * 4 + w] = slice == 0 ? sums(i * 4 + w) : sums(kKept + i * 4 + w);
        given.word[w] = value == 0 ? kZero : __float_as_uint(value);
      }
      store_words(theirs + i * kStep, given);
    }
    take(sum.context, mine, kept);
  }

 private:
  static constexpr std::uint32_t kZero = 0x80000000U;

  /// All at once: what counts is how often the way to the L2 cache is gone.
  __device__ static void take(const Context& context, std::byte* from, float (&kept)[kKept]) {
    Patience patience(context);
    Vector found[kVectors];
    for (bool is_here = false; !is_here;) {
      is_here = true;
#pragma unroll
      for (int i = 0; i < kVectors; ++i) {
        found[i] = load_words(from + i * kStep);
#pragma unroll
        for (int w = 0; w < 4; ++w) is_here = is_here && found[i].word[w] != 0;
      }
      if (!is_here && patience.is_due() && patience.is_over(from, 1, 0)) break;
    }
#pragma unroll
    for (int i = 0; i < kVectors; ++i) {
      store_words(from + i * kStep, Vector{0, 0, 0, 0});
#pragma unroll
      for (int w = 0; w < 4; ++w) kept[i * 4 + w] += __uint_as_float(found[i].word[w]);
    }
  }
};

}  // namespace tandem::cuda
