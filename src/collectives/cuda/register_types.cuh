#pragma once
/// Registers a kernel for every element type.

#include "tandem/advanced/cuda_kernel.cuh"
#include "tandem/numeric.h"

namespace tandem::cuda {

/// Threads of a block of the collectives' kernels: CollectiveOptions' default.
inline constexpr int kThreads = 512;

template <template <class> class K, class... T>
void register_each() {
  (register_kernel<K<T>, kThreads>(), ...);
}

template <template <class> class K>
void register_types() {
  register_each<K, float, f16, bf16, fp8_e4m3, fp8_e5m2, std::int8_t, std::uint8_t, std::int32_t, std::uint32_t,
                std::int64_t, std::uint64_t, double>();
}

}  // namespace tandem::cuda
