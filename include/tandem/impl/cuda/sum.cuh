#pragma once
/// Sums, prefix sums and maxima over a warp.

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

/// Returns the sum of the values of this lane and of those before it.
template <class T>
__device__ inline T sum_up_to_lane(T value) {
  const int lane = static_cast<int>(threadIdx.x) % 32;
#pragma unroll
  for (int distance = 1; distance < 32; distance *= 2) {
    const T other = __shfl_up_sync(~0U, value, distance);
    if (lane >= distance) value += other;
  }
  return value;
}

}  // namespace tandem::cuda
