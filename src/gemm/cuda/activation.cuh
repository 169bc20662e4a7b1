#pragma once
/// The activations on the device; their definitions are in tandem/gemm.h.

#include "tandem/gemm.h"

namespace tandem::cuda {

/// Applies it to `Count` values of one thread; all threads of a warp have the same activation.
template <int Count>
__device__ inline void activate(Activation activation, float (&values)[Count]) {
  switch (activation) {
    case Activation::kNone:
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

}  // namespace tandem::cuda
