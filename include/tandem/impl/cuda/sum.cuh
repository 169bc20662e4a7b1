#pragma once
/// Sums and maxima over a warp.

#include "tandem/reduce_op.h"

namespace tandem::cuda {

/// Adds every lane's value. The result is the same in all lanes, because two lanes that exchange values add the same
/// two.
template <class T>
__device__ inline T sum_of_warp(T value) {
#pragma unroll
  for (int distance = 16; distance > 0; distance /= 2) value += __shfl_xor_sync(~0U, value, distance);
  return value;
}

/// Does the same for the greatest value.
template <class T>
__device__ inline T greatest_of_warp(T value) {
#pragma unroll
  for (int distance = 16; distance > 0; distance /= 2)
    value = apply(ReduceOp::kMax, value, __shfl_xor_sync(~0U, value, distance));
  return value;
}

}  // namespace tandem::cuda
