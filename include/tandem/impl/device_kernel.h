#pragma once
/// How host code that a plain C++ compiler sees launches a kernel that nvcc compiled.

#include "tandem/range.h"

namespace tandem::detail {

/// One launch on a GPU; `context` is a cuda::Context, `stream` a cudaStream_t, `records` a cuda::RecordArea or null.
struct DeviceLaunch {
  int blocks = 1;
  const void* context = nullptr;
  const void* args = nullptr;
  void* stream = nullptr;
  /// Its blocks may take their places before the stream's previous kernel ends (programmatic dependent launch).
  bool early = false;
  const void* records = nullptr;
};

/// A kernel compiled for GPUs, for one block size.
struct DeviceKernel {
  int threads = 0;
  void (*launch)(const DeviceLaunch& launch) = nullptr;
  /// Loads it on the current device, so that no launch has to; returns how many of its blocks fit one SM.
  int (*load)() = nullptr;
};

/// How many blocks of K an SM takes at least. K says so with its own kBlocksPerSm, which bounds its registers: for
/// grids of more blocks than SMs that wait for each other, and where other kernels have to find room beside one.
template <class K>
inline constexpr int kBlocksPerSm = 1;
template <class K>
requires requires { K::kBlocksPerSm; }
inline constexpr int kBlocksPerSm<K> = K::kBlocksPerSm;

/// Whether the stream's next kernel may take its places only when K has ended. K says so with its own kHoldsNext: one
/// that waits until there is room for what follows.
template <class K>
inline constexpr bool kHoldsNext = false;
template <class K>
requires requires { K::kHoldsNext; }
inline constexpr bool kHoldsNext<K> = K::kHoldsNext;

/// Whether K touches no memory before next_epoch, which then waits for the kernel before. K says so with its own
/// kEpochFirst.
template <class K>
inline constexpr bool kEpochFirst = false;
template <class K>
requires requires { K::kEpochFirst; }
inline constexpr bool kEpochFirst<K> = K::kEpochFirst;

/// The compiled form of kernel K, once registered (tandem/advanced/cuda_kernel.cuh); null in a build without it.
template <class K>
struct DeviceKernelOf {
  static inline const DeviceKernel* kernel = nullptr;
};

}  // namespace tandem::detail
