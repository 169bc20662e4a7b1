#pragma once
/// Sums over a warp.

namespace tandem::cuda {

/// Adds every lane's value. The result is the same in all lanes, because two lanes that exchange values add the same
/// two.
template <class T>
__device__ inline T sum_of_warp(T value) {
#pragma unroll
  for (int distance = 16; distance > 0; distance /= 2) value += __shfl_xor_sync(~0U, value, distance);
  return value;
}

}  // namespace tandem::cuda
