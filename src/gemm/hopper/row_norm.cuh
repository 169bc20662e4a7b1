#pragma once
/// Residual and RMS norm of complete sums in the kernel for few rows (GemmNorm). A block has 64 columns of all rows.
/// The blocks exchange the squares of their columns: a word that is not zero has arrived, because the sign bit is set.
///
/// Two places alternate. The words of call c are read until its kernel is complete. In call c + 1 their block sets them
/// to zero, and in call c + 2 it writes them again.

#include <cutlass/arch/barrier.h>

#include "gemm/hopper/host/tensor_map.h"
#include "gemm/hopper/transposed_sum.cuh"

namespace tandem::cuda {

/// Element is the type of C, 16 bits. Rows are the rows of a block.
template <class Element, int Rows>
class RowNorm {
  static constexpr int kWarps = SkinnyExchange::kThreads / 32;
  static constexpr int kRowsOfWarp = (Rows + kWarps - 1) / kWarps;
  static constexpr int kAtOnce = kRowsOfWarp < 8 ? kRowsOfWarp : 8;  // rows whose squares are loaded together
  static constexpr int kValues = Rows / 2;                           // of a thread
  static_assert(Rows <= kSkinnyBlock && Rows % 16 == 0);

 public:
  using Values = float[kValues];
  struct Params {
    CUtensorMap sum;
    bool has_sum;
    const Element* weight;
    const Element* bias;
    const Element* residual;
    float* squares;
    float epsilon;
    float per_column;  ///< 1 / n
  };
  struct Storage {
    float squares[kWarps][Rows];
    float factors[Rows];
  };

  static Params params(const Gemm& gemm, int box_rows, int box_cols) {
    const GemmNorm& norm = gemm.destination.sum()->norm;
    Params params{};
    params.has_sum = norm.sum != nullptr;
    if (params.has_sum) params.sum = tensor_map(norm.sum, gemm.out_type, gemm.m, gemm.n, box_rows, box_cols);
    params.weight = static_cast<const Element*>(norm.weight);
    params.bias = static_cast<const Element*>(norm.bias);
    params.residual = static_cast<const Element*>(norm.residual);
    params.squares = norm.squares;
    params.epsilon = norm.epsilon;
    params.per_column = 1.0F / static_cast<float>(gemm.n);
    return params;
  }

  /// For one thread of the 128 of column `column` of tiles, after the previous kernel. It loads the residual, which is
  /// there before the peers' sums are.
  __device__ RowNorm(const Params& params, Storage& storage, const DeviceSum& sum, int column, int thread)
      : params_(params),
        storage_(storage),
        sum_(sum),
        squares_(sum.columns),
        column_(column),
        thread_(thread),
        col_(column * kSkinnyColumns + thread / 32 * 16 + thread % 32 / 4) {
#pragma unroll
    for (int j = 0; j < kValues; ++j) {
      const bool has = params.residual != nullptr && row_of(j) < sum.rows && col_of(j) < sum.columns;
      residual_[j] = has ? params.residual[Size{row_of(j)} * sum.columns + col_of(j)] : Element(0.0F);
    }
  }

  /// Adds the residual and rounds.
  __device__ void add_residual(Values& values) const {
#pragma unroll
    for (int j = 0; j < kValues; ++j)
      values[j] = static_cast<float>(Element(values[j] + static_cast<float>(residual_[j])));
  }

  /// Norms the rounded sums of call `call`.
  __device__ void norm(Values& values, Epoch call) const {
    give_squares(values, call);
    take_squares(call);
    const Pair weight = pair_of(params_.weight);
    const Pair bias = params_.bias == nullptr ? Pair{0, 0} : pair_of(params_.bias);
#pragma unroll
    for (int j = 0; j < kValues; ++j) {
      const bool is_first = j % 4 < 2;
      const float scaled = __fmul_rn(values[j] * storage_.factors[row_of(j)], is_first ? weight.first : weight.second);
      values[j] = __fadd_rn(scaled, is_first ? bias.first : bias.second);
    }
  }

 private:
  static constexpr std::uint32_t kArrived = 0x80000000U;

  // For each 8 rows a thread has two neighbours in one column, and two in the eighth column after it.
  __device__ int row_of(int j) const { return j / 4 * 8 + thread_ % 4 * 2 + j % 2; }
  __device__ int col_of(int j) const { return col_ + (j % 4 < 2 ? 0 : 8); }
  __device__ Pair pair_of(const Element* vector) const {
    const auto of = [&](int col) { return col < sum_.columns ? static_cast<float>(vector[col]) : 0.0F; };
    return {of(col_), of(col_ + 8)};
  }
  /// Waits for the threads of all warps.
  __device__ static void sync() { cutlass::arch::NamedBarrier::sync(SkinnyExchange::kThreads, 0); }
  __device__ std::byte* place(Epoch call, int row, int column) const {
    return reinterpret_cast<std::byte*>(params_.squares + squares_.place(call, row, column));
  }

  __device__ void give_squares(const Values& values, Epoch call) const {
#pragma unroll
    for (int j = 0; j < kValues; j += 4)
#pragma unroll
      for (int r = 0; r < 2; ++r) {
        float squares = values[j + r] * values[j + r] + values[j + r + 2] * values[j + r + 2];
#pragma unroll
        for (int distance = 4; distance < 32; distance *= 2) squares += __shfl_xor_sync(~0U, squares, distance);
        if (thread_ % 32 < 4) storage_.squares[thread_ / 32][row_of(j + r)] = squares;
      }
    sync();
    // The call before may have had more rows than this one.
    if (thread_ < kSkinnyBlock) store_word(place(call + 1, thread_, column_), 0);
    if (thread_ >= Rows || thread_ >= sum_.rows) return;
    float squares = 0;
#pragma unroll
    for (int warp = 0; warp < kWarps; ++warp) squares += storage_.squares[warp][thread_];
    store_word(place(call, thread_, column_), __float_as_uint(squares) | kArrived);
  }

  /// Each warp adds the squares of some rows over all columns.
  __device__ void take_squares(Epoch call) const {
    const int lane = thread_ % 32;
#pragma unroll 1
    for (int begin = thread_ / 32; begin < sum_.rows; begin += kWarps * kAtOnce) {
      float totals[kAtOnce] = {};
#pragma unroll 1
      for (int first = lane * 4; first < squares_.columns; first += 128) add_arrived(totals, call, begin, first);
#pragma unroll
      for (int i = 0; i < kAtOnce; ++i) {
#pragma unroll
        for (int distance = 1; distance < 32; distance *= 2) totals[i] += __shfl_xor_sync(~0U, totals[i], distance);
        const int row = begin + i * kWarps;
        if (lane == 0 && row < Rows) storage_.factors[row] = inverse_root(mean_of(totals[i]) + params_.epsilon);
      }
    }
    sync();
  }

  /// Waits for four columns of some rows.
  __device__ void add_arrived(float (&totals)[kAtOnce], Epoch call, int begin, int first) const {
    Vector found[kAtOnce];
    Watchdog watchdog(sum_.context);
    for (bool are_here = false; !are_here;) {
      are_here = true;
#pragma unroll
      for (int i = 0; i < kAtOnce; ++i) {
        if (begin + i * kWarps >= sum_.rows) continue;
        found[i] = load_words(place(call, begin + i * kWarps, first));
#pragma unroll
        for (int w = 0; w < 4; ++w) are_here = are_here && (first + w >= squares_.columns || found[i].word[w] != 0);
      }
      if (!are_here && watchdog.is_due() && watchdog.is_over_without_call(place(call, begin, first), 1, 0)) break;
    }
#pragma unroll
    for (int i = 0; i < kAtOnce; ++i)
#pragma unroll
      for (int w = 0; w < 4; ++w)
        if (begin + i * kWarps < sum_.rows && first + w < squares_.columns)
          totals[i] += __uint_as_float(found[i].word[w] & ~kArrived);
  }

  // Quotients and roots are rounded as IEEE 754 demands, for normal numbers, so that they are those of NormRow. The
  // compiler's own have a call for other numbers, beside which ptxas makes WGMMA instructions wait for each other.
  __device__ float mean_of(float total) const {
    const auto count = static_cast<float>(sum_.columns);
    const float mean = total * params_.per_column;
    return __fmaf_rn(__fmaf_rn(-mean, count, total), params_.per_column, mean);
  }
  /// Returns 1 / sqrt(x).
  __device__ static float inverse_root(float x) {
    float estimate;
    asm("rsqrt.approx.f32 %0, %1;" : "=f"(estimate) : "f"(x));
    float root = x * estimate;
    root = __fmaf_rn(__fmaf_rn(-root, root, x), 0.5F * estimate, root);
    float inverse;
    asm("rcp.approx.f32 %0, %1;" : "=f"(inverse) : "f"(root));
    inverse = __fmaf_rn(__fmaf_rn(-root, inverse, 1.0F), inverse, inverse);
    return __fmaf_rn(__fmaf_rn(-root, inverse, 1.0F), inverse, inverse);
  }

  __device__ static void store_word(std::byte* to, std::uint32_t word) {
    asm volatile("st.relaxed.gpu.global.u32 [%0], %1;" ::"l"(to), "r"(word) : "memory");
  }

  const Params& params_;
  Storage& storage_;
  const DeviceSum& sum_;
  const SkinnySquares squares_;
  const int column_;
  const int thread_;
  const int col_;  // first column of the thread
  Element residual_[kValues];
};

}  // namespace tandem::cuda
