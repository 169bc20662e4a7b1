#pragma once
/// Registers the recording variants of a kernel for some element types. Other types run in their usual variant, of
/// which only the time is known.

#include "collectives/cuda/register_types.cuh"
#include "tandem/advanced/cuda_profiled_kernel.cuh"
#include "tandem/numeric.h"

namespace tandem::cuda {

template <template <class> class K>
void register_profiled_types() {
  register_profiled_kernel<K<float>, kThreads>();
  register_profiled_kernel<K<f16>, kThreads>();
  register_profiled_kernel<K<bf16>, kThreads>();
}

}  // namespace tandem::cuda
