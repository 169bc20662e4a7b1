#pragma once
/// The epilogue of a GEMM on the device. Its definition is in tandem/advanced/gemm.h.

#include <cutlass/numeric_conversion.h>

#include "tandem/advanced/gemm.h"

namespace tandem::cuda {

/// Applies the activation to `Count` values of one thread. All threads of a warp have the same activation.
template <int Count>
__device__ inline void activate(Activation activation, float (&values)[Count]) {
  switch (activation) {
    case Activation::kNone:
    case Activation::kSwiGlu:  // of pairs: see gate()
    case Activation::kGeGlu:
      break;
    case Activation::kRelu:
#pragma unroll
      for (float& value : values) value = value < 0 ? 0 : value;
      break;
    case Activation::kGelu:
#pragma unroll
      for (float& value : values) value = value * 0.5F * (1 + erff(value * 0.70710678F));
      break;
    case Activation::kSilu:
#pragma unroll
      for (float& value : values) value = __fdividef(value, 1 + __expf(-value));
      break;
  }
}

/// Applies a gated activation to `Count` sums of one thread: for each 8 columns four sums, gates and ups in turn.
template <int Count>
__device__ inline void gate(Activation activation, const float (&sums)[Count], float (&to)[Count / 2]) {
  constexpr int kOfGroup = 4;
  static_assert(kGateGroup == 8 && Count % (2 * kOfGroup) == 0);
#pragma unroll
  for (int i = 0; i < Count / 2; ++i) to[i] = sums[i / kOfGroup * 2 * kOfGroup + i % kOfGroup];
  activate(activation == Activation::kGeGlu ? Activation::kGelu : Activation::kSilu, to);
#pragma unroll
  for (int i = 0; i < Count / 2; ++i) to[i] *= sums[(i / kOfGroup * 2 + 1) * kOfGroup + i % kOfGroup];
}

struct Pair {
  float first, second;
};

/// Unpacks two neighbours of a 16-bit type.
template <class T>
__device__ inline Pair unpacked(std::uint32_t bits) {
  T pair[2];
  __builtin_memcpy(pair, &bits, sizeof bits);
  return {static_cast<float>(pair[0]), static_cast<float>(pair[1])};
}

/// Packs two neighbours of a type of 16 or 8 bits; 8-bit values are in the lower half.
template <class T>
__device__ inline std::uint32_t packed(float first, float second) {
  cutlass::Array<float, 2> values;
  values[0] = first;
  values[1] = second;
  const auto pair = cutlass::NumericArrayConverter<T, float, 2>::convert(values);
  std::uint32_t bits = 0;
  __builtin_memcpy(&bits, &pair, sizeof pair);
  return bits;
}

/// Adds the bias to a thread's sums of columns from `column` on, in the layout of TileBox. There are `columns` columns.
template <class Bias, int Count>
__device__ inline void add_bias(float (&values)[Count], const Bias* bias, int column, int columns, int thread) {
  if (bias == nullptr) return;
  // All loads come first. Otherwise each one would wait for the L2 cache by itself.
  std::uint32_t pairs[Count / 4];
#pragma unroll
  for (int j = 0; j < Count / 4; ++j) {
    const int col = column + j * 8 + thread % 4 * 2;
    pairs[j] = col < columns ? __ldg(reinterpret_cast<const unsigned*>(bias + col)) : 0;
  }
#pragma unroll
  for (int j = 0; j < Count / 4; ++j) {
    const Pair pair = unpacked<Bias>(pairs[j]);
    values[j * 4] += pair.first;
    values[j * 4 + 1] += pair.second;
    values[j * 4 + 2] += pair.first;
    values[j * 4 + 3] += pair.second;
  }
}

template <int Count>
__device__ inline void scale_all(float (&values)[Count], float scale) {
#pragma unroll
  for (float& value : values) value *= scale;
}

}  // namespace tandem::cuda
