// The GPU kernels of merge_heads.

#include "collectives/cuda/register.h"
#include "collectives/merge_heads/packets.h"
#include "tandem/advanced/cuda_kernel.cuh"

namespace tandem::cuda {

namespace {

template <class T>
void register_type() {
  register_kernel<kernels::MergeHeadsLL<T>, kernels::MergeHeadsLL<T>::kThreads>();
  register_kernel<kernels::MergeHeadsLL128<T>, kernels::MergeHeadsLL128<T>::kThreads>();
}

}  // namespace

void register_merge_heads() {
  register_type<float>();
  register_type<f16>();
  register_type<bf16>();
}

}  // namespace tandem::cuda
