#pragma once
/// Factors of a GEMM, converted and rearranged into panels that the inner loop reads sequentially.

#include <cstring>

#include "tandem/numeric.h"

namespace tandem::host_gemm {

/// Products in a run, and so the depth of a panel.
inline constexpr Size kDepth = 256;

/// Converts `count` consecutive elements, sixteen at a time: with -O2, g++ 12 vectorises loops of known length only.
template <class From, class To>
void convert_row(const From* from, To* to, Size count) {
  constexpr Size kStep = 16;
  for (; count >= kStep; count -= kStep, from += kStep, to += kStep) convert(from, to, kStep);
  for (Size i = 0; i < count; ++i) to[i] = convert<To>(from[i]);
}

/// Four rows of four values (rows `from_step` apart) become four columns (`to_step` apart).
inline void transpose_4x4(const float* from, Size from_step, float* to, Size to_step) {
  using Vector [[gnu::vector_size(16)]] = float;
  Vector r0, r1, r2, r3;
  std::memcpy(&r0, from, 16);
  std::memcpy(&r1, from + from_step, 16);
  std::memcpy(&r2, from + 2 * from_step, 16);
  std::memcpy(&r3, from + 3 * from_step, 16);
  const Vector low01 = __builtin_shufflevector(r0, r1, 0, 4, 1, 5);
  const Vector high01 = __builtin_shufflevector(r0, r1, 2, 6, 3, 7);
  const Vector low23 = __builtin_shufflevector(r2, r3, 0, 4, 1, 5);
  const Vector high23 = __builtin_shufflevector(r2, r3, 2, 6, 3, 7);
  const Vector columns[4] = {
      __builtin_shufflevector(low01, low23, 0, 1, 4, 5), __builtin_shufflevector(low01, low23, 2, 3, 6, 7),
      __builtin_shufflevector(high01, high23, 0, 1, 4, 5), __builtin_shufflevector(high01, high23, 2, 3, 6, 7)};
  for (Size i = 0; i < 4; ++i) std::memcpy(to + i * to_step, &columns[i], 16);
}
inline void transpose_4x4(const double* from, Size from_step, double* to, Size to_step) {
  for (Size i = 0; i < 4; ++i) {
    for (Size j = 0; j < 4; ++j) to[i * to_step + j] = from[j * from_step + i];
  }
}

/// Packs rows along k (A, and B as N x K): `rows` of them in panels of kWidth, padded with rows of zeros. Each row has
/// `depth` <= kDepth elements. A panel takes kWidth * kDepth values, kWidth for each step of k.
template <int kWidth, class From, class Real>
void pack_rows(const From* from, Size ld, Size rows, Size depth, Real* to) {
  static_assert(kWidth % 4 == 0 && kDepth % 4 == 0);
  constexpr Size kChunk = 64;
  for (Size row = 0; row < rows; row += kWidth, to += kWidth * kDepth) {
    for (Size k = 0; k < depth; k += kChunk) {
      const Size count = min(kChunk, depth - k);
      alignas(64) Real chunk[kWidth][kChunk];
      for (Size r = 0; r < kWidth; ++r) {
        const Size present = row + r < rows ? count : 0;
        convert_row(from + (row + r) * ld + k, chunk[r], present);
        for (Size i = present; i < round_up(count, 4); ++i) chunk[r][i] = 0;
      }
      for (Size i = 0; i < count; i += 4) {
        for (Size r = 0; r < kWidth; r += 4) transpose_4x4(&chunk[r][i], kChunk, to + (k + i) * kWidth + r, kWidth);
      }
    }
  }
}

/// Packs rows across k (B as K x N): `columns` of them in the same panels.
template <int kWidth, class From, class Real>
void pack_columns(const From* from, Size ld, Size columns, Size depth, Real* to) {
  for (Size column = 0; column < columns; column += kWidth, to += kWidth * kDepth) {
    const Size present = min(kWidth, columns - column);
    for (Size k = 0; k < depth; ++k) {
      convert_row(from + k * ld + column, to + k * kWidth, present);
      for (Size i = present; i < kWidth; ++i) to[k * kWidth + i] = 0;
    }
  }
}

}  // namespace tandem::host_gemm
