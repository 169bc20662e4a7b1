#pragma once
/// Registers a kernel for every element type. The generated sources of the library's kernels include it.

#include "tandem/advanced/cuda_kernel.cuh"
#include "tandem/advanced/cuda_nodes_kernel.cuh"
#include "tandem/advanced/cuda_profiled_kernel.cuh"
#include "tandem/numeric.h"

namespace tandem::cuda {

template <template <class> class K, int Threads, class... T>
void register_each() {
  (register_kernel<K<T>, Threads>(), ...);
}

template <template <class> class K, int Threads>
void register_types() {
  register_each<K, Threads, float, f16, bf16, fp8_e4m3, fp8_e5m2, std::int8_t, std::uint8_t, std::int32_t,
                std::uint32_t, std::int64_t, std::uint64_t, double>();
}

/// Registers the profiled forms for some element types. Other types run in their usual form, and timelines show their
/// begin and end.
template <template <class> class K, int Threads>
void register_profiled_types() {
  register_profiled_kernel<K<float>, Threads>();
  register_profiled_kernel<K<f16>, Threads>();
  register_profiled_kernel<K<bf16>, Threads>();
}

/// Registers a kernel of floating-point types whose output has the same type or e4m3. It has no profiled form.
template <template <class, class> class K, int Threads>
void register_outputs() {
  register_kernel<K<float, float>, Threads>();
  register_kernel<K<f16, f16>, Threads>();
  register_kernel<K<bf16, bf16>, Threads>();
  register_kernel<K<float, fp8_e4m3>, Threads>();
  register_kernel<K<f16, fp8_e4m3>, Threads>();
  register_kernel<K<bf16, fp8_e4m3>, Threads>();
}

/// Registers the forms for worlds of several nodes, of some element types. Such worlds refuse other types.
template <template <class> class K, int Threads>
void register_nodes_types() {
  register_nodes_kernel<K<float>, Threads>();
  register_nodes_kernel<K<f16>, Threads>();
  register_nodes_kernel<K<bf16>, Threads>();
  register_nodes_kernel<K<std::int32_t>, Threads>();
}

template <template <class> class K, class... T>
void register_near_each() {
  (register_near_kernel<K<T>>(), ...);
}

template <template <class> class K>
void register_near_types() {
  register_near_each<K, float, f16, bf16, fp8_e4m3, fp8_e5m2, std::int8_t, std::uint8_t, std::int32_t, std::uint32_t,
                     std::int64_t, std::uint64_t, double>();
}

template <template <class, class> class K>
void register_near_outputs() {
  register_near_kernel<K<float, float>>();
  register_near_kernel<K<f16, f16>>();
  register_near_kernel<K<bf16, bf16>>();
  register_near_kernel<K<float, fp8_e4m3>>();
  register_near_kernel<K<f16, fp8_e4m3>>();
  register_near_kernel<K<bf16, fp8_e4m3>>();
}

}  // namespace tandem::cuda
