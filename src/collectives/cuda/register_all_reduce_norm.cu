// The GPU kernels of all_reduce_norm.

#include "collectives/all_reduce_norm/one_shot_ll.h"
#include "collectives/all_reduce_norm/two_shot.h"
#include "collectives/cuda/register.h"
#include "collectives/cuda/register_types.cuh"

namespace tandem::cuda {

namespace {

template <template <class, class> class K, class... T>
void register_outputs() {
  (register_kernel<K<T, T>, kThreads>(), ...);
  (register_kernel<K<T, fp8_e4m3>, kThreads>(), ...);
}

}  // namespace

void register_all_reduce_norm() {
  register_outputs<kernels::AllReduceNormOneShotLL, float, f16, bf16>();
  register_outputs<kernels::AllReduceNormOneShotLL128, float, f16, bf16>();
  register_outputs<kernels::AllReduceNormTwoShot, float, f16, bf16>();
}

}  // namespace tandem::cuda
