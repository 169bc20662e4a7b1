#pragma once
/// Compiles a kernel of one's own for GPUs. For a source file that nvcc compiles as C++20 (.cu); host programs launch
/// the kernel with Stream::launch, whichever compiler they are for. examples/checked_kernel is a whole project:
///
///   #include "tandem/advanced/cuda_kernel.cuh"
///   #include "shift_add.h"
///
///   void register_kernels() { tandem::cuda::register_kernel<ShiftAdd, 512>(); }  // called before a world is made

#include "tandem/impl/cuda/portable_kernel.cuh"

namespace tandem::cuda {

/// Adds `usual` to what worlds load, unless `registered` is it already.
void add_kernel(std::string_view name, const detail::DeviceKernel*& registered, const detail::DeviceKernel& usual);

/// Makes K launchable on GPUs, with blocks of `Threads` threads, a multiple of 32 up to 1024: each launch's
/// Grid::threads.
///
/// To be called before the process makes its first world: worlds load all kernels at once, since a load behind a kernel
/// that waits deadlocks. May be called again; throws InvalidArgument where K has another number of threads.
template <class K, int Threads>
void register_kernel() {
  static_assert(Threads >= 32 && Threads <= 1024 && Threads % 32 == 0, "a block has 1 to 32 warps of 32 threads");
  add_kernel(type_name<K>(), detail::DeviceKernelOf<K>::kernel, UsualForm<K, Threads>::kernel);
}

}  // namespace tandem::cuda
