#pragma once
/// Launches of nvcc's kernels from host code of a plain C++ compiler.

#include "tandem/range.h"

namespace tandem::detail {

/// One launch on a GPU; `context` is a cuda::Context, `stream` a cudaStream_t, `records` a cuda::RecordArea or null.
struct DeviceLaunch {
  int blocks = 1;
  const void* context = nullptr;
  const void* args = nullptr;
  void* stream = nullptr;
  /// Whether its blocks may start before the stream's previous kernel ends (programmatic dependent launch).
  bool early = false;
  const void* records = nullptr;
  /// A cuda::MailLink, for forms that run between nodes.
  const void* mail = nullptr;
};

/// A kernel compiled for GPUs, for one block size.
struct DeviceKernel {
  int threads = 0;
  void (*launch)(const DeviceLaunch& launch) = nullptr;
  /// Loads it on the current device, so that no launch has to. Returns the number of its blocks that fit one SM.
  int (*load)() = nullptr;
};

/// The least number of blocks of K that an SM takes. K sets it with its own kBlocksPerSm, which bounds its registers.
/// It is for grids of more blocks than SMs that wait for each other, and for kernels that run beside others.
template <class K>
inline constexpr int kBlocksPerSm = 1;
template <class K>
requires requires { K::kBlocksPerSm; }
inline constexpr int kBlocksPerSm<K> = K::kBlocksPerSm;

/// Whether the stream's next kernel may start only when K has ended. K sets it with its own kHoldsNext, if it waits
/// until there is room for its successors.
template <class K>
inline constexpr bool kHoldsNext = false;
template <class K>
requires requires { K::kHoldsNext; }
inline constexpr bool kHoldsNext<K> = K::kHoldsNext;

/// Whether K accesses no memory before next_epoch, which then waits for the previous kernel. K sets it with its own
/// kEpochFirst.
template <class K>
inline constexpr bool kEpochFirst = false;
template <class K>
requires requires { K::kEpochFirst; }
inline constexpr bool kEpochFirst<K> = K::kEpochFirst;

/// The compiled form of kernel K, once it is registered (tandem/advanced/cuda_kernel.cuh); null in a build without
/// CUDA.
template <class K>
struct DeviceKernelOf {
  static inline const DeviceKernel* kernel = nullptr;
};

}  // namespace tandem::detail
