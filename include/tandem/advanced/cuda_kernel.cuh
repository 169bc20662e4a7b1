#pragma once
/// Compiles a user's kernel for GPUs. It is for a source file that nvcc compiles as C++20 (.cu). Host programs, also of
/// another compiler, launch the kernel with Stream::launch. examples/checked_kernel is a whole project:
///
///   #include "tandem/advanced/cuda_kernel.cuh"
///   #include "shift_add.h"
///
///   void register_kernels() { tandem::cuda::register_kernel<ShiftAdd, 512>(); }  // called before a world is made

#include "tandem/impl/cuda/portable_kernel.cuh"

namespace tandem::cuda {

/// Adds `usual` to the kernels that worlds load, unless it is `registered` already.
void add_kernel(std::string_view name, const detail::DeviceKernel*& registered, const detail::DeviceKernel& usual);

/// Makes K launchable on GPUs with blocks of `Threads` threads, a multiple of 32 up to 1024. Every launch has this
/// number as Grid::threads.
///
/// It must be called before the process makes its first world. Worlds load all kernels at once, because a load behind a
/// waiting kernel deadlocks. It may be called again. Throws InvalidArgument if K has another number of threads.
template <class K, int Threads>
void register_kernel() {
  static_assert(Threads >= 32 && Threads <= 1024 && Threads % 32 == 0, "a block has 1 to 32 warps of 32 threads");
  add_kernel(type_name<K>(), detail::DeviceKernelOf<K>::kernel, UsualForm<K, Threads>::kernel);
}

}  // namespace tandem::cuda
