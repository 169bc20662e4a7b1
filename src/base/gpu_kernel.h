#pragma once
/// Markers below a kernel: they name it for the build, which compiles it for GPUs (cmake/GpuKernels.cmake).
///
/// A marker is one line that begins in the first column, in the kernel's own namespace:
///
///   TANDEM_GPU_KERNEL(AllGatherPush, 512);       // the kernel; threads of a block
///   TANDEM_GPU_KERNELS(AllReduceTwoShot, 512);   // a template of the element type, for every type
///   TANDEM_GPU_OUTPUT_KERNELS(AllReduceNormTwoShot, 512);  // a template of a type and its output's type
///   TANDEM_GPU_STEP(AwaitWord);                  // one warp of at most 32 registers a thread, beside any GEMM
///   TANDEM_SIMULATED_KERNELS(AllReduceMultimem)  // a template that the CUDA backend does not launch
///   TANDEM_GPU_BETWEEN_NODES(AllGatherPush);     // and this one addresses PEs of other nodes: another form of it
///
/// For C++ a marker declares gpu_kernel, a function that has no definition. A plan checks with it that its kernel has a
/// marker.

#define TANDEM_GPU_BETWEEN_NODES(K) static_assert(true)
#define TANDEM_GPU_KERNEL(K, threads) void gpu_kernel(const K*)
#define TANDEM_GPU_STEP(K) void gpu_kernel(const K*)
#define TANDEM_GPU_KERNELS(K, threads) \
  template <class T>                   \
  void gpu_kernel(const K<T>*)
#define TANDEM_GPU_OUTPUT_KERNELS(K, threads) \
  template <class T, class Q>                 \
  void gpu_kernel(const K<T, Q>*)
#define TANDEM_SIMULATED_KERNELS(K) \
  template <class T>                \
  void gpu_kernel(const K<T>*)

namespace tandem::detail {

/// Whether a marker names the kernel.
template <class K>
inline constexpr bool kHasGpuMarker = requires(const K* kernel) {
  gpu_kernel(kernel);
};

}  // namespace tandem::detail
