#pragma once
/// Registers the recorded forms of a kernel for the element types whose operations can be recorded: those that
/// timelines are made of. Other types run in their usual form, of which only the time is known.

#include "collectives/cuda/register_types.cuh"
#include "tandem/advanced/cuda_recorded_kernel.cuh"
#include "tandem/numeric.h"

namespace tandem::cuda {

template <template <class> class K>
void register_recorded_types() {
  register_recorded_kernel<K<float>, kThreads>();
  register_recorded_kernel<K<f16>, kThreads>();
  register_recorded_kernel<K<bf16>, kThreads>();
}

}  // namespace tandem::cuda
