#pragma once
/// Arguments that the algorithms of all_reduce_norm share.

#include "collectives/steps/scale_groups.h"
#include "tandem/layer/all_reduce_norm.h"

namespace tandem::kernels {

/// See tandem/layer/all_reduce_norm.h. Null pointers are arguments that are not given.
template <class T, class Q>
struct NormArgs {
  Symm<const T> in;
  const T* residual = nullptr;
  const T* weight = nullptr;
  const T* bias = nullptr;
  const T* norm_bias = nullptr;
  Symm<Q> out;
  Symm<T> sum;
  Symm<float> scales;
  T* kept = nullptr;  // [block][hidden]: the sums of a row, if `sum` is null
  Size rows = 0;
  Size hidden = 0;
  Norm norm = Norm::kNone;
  Quantisation quantisation = Quantisation::kNone;
  float epsilon = 0;
  float scale = 1;
  bool sharded_residual = false;
};

/// The place of a row's results.
struct NormPlace {
  Size row = 0;             ///< its number in the call
  Size held = 0;            ///< its number in residual and sum
  bool sum_to_all = false;  ///< whether the sums go to all PEs; else this PE keeps them
  bool out_to_all = false;  ///< the same for output and scales
};

/// Returns the scale of values up to `greatest`. It is 1 for values so small that their scale has no inverse.
TANDEM_DEVICE inline float scale_for(float greatest) { return greatest < 1e-30F ? 1.0F : greatest / 448.0F; }

}  // namespace tandem::kernels
