#pragma once
/// Transfer of the sums of a part of a tile's depth to the block that completes the tile, through the L2 cache. Each
/// thread's sums go unchanged to the same thread of the same block of the other cluster.

#include "tandem/advanced/gemm.h"
#include "tandem/impl/cuda/watchdog.cuh"

namespace tandem::cuda {

/// Gemm::workspace in the form that the kernel reads. A cluster has one place.
class PartialSums {
 public:
  PartialSums() = default;
  explicit PartialSums(const GemmWorkspace& workspace)
      : words_(workspace.words), sums_(reinterpret_cast<float4*>(workspace.sums)) {}

  template <class Sums>
  __device__ void give(int place, int group, int thread, const Sums& sums) const {
    float4* const to = at<Sums>(place, group, thread);
#pragma unroll
    for (int i = 0; i < kVectors<Sums>; ++i)
      __stcg(to + i * kStep, make_float4(sums(i * 4), sums(i * 4 + 1), sums(i * 4 + 2), sums(i * 4 + 3)));
  }
  /// Signals that the sums are there. The calling thread knows that all threads of the warpgroup have given theirs.
  __device__ void signal(int place, int group) const {
    asm volatile("st.release.gpu.global.u64 [%0], 1;" ::"l"(&word(place, group)->value) : "memory");
  }

  /// Adds the sums at `place`, after a wait for them.
  template <class Sums>
  __device__ void add(int place, int group, int thread, Sums& sums) const {
    const float4* const from = at<Sums>(place, group, thread);
    constexpr int kMost = 16;  // vectors in flight
    constexpr int kBatch = kVectors<Sums> <= kMost ? kVectors<Sums> : kVectors<Sums> / 2;
    static_assert(kBatch <= kMost && kVectors<Sums> % kBatch == 0);
#pragma unroll
    for (int first = 0; first < kVectors<Sums>; first += kBatch) {
      float4 given[kBatch];
#pragma unroll
      for (int i = 0; i < kBatch; ++i) given[i] = __ldcg(from + (first + i) * kStep);
#pragma unroll
      for (int i = 0; i < kBatch; ++i) {
        sums((first + i) * 4) += given[i].x;
        sums((first + i) * 4 + 1) += given[i].y;
        sums((first + i) * 4 + 2) += given[i].z;
        sums((first + i) * 4 + 3) += given[i].w;
      }
    }
  }

  /// Waits until the sums at `place` are there, and resets the word. The next launch starts to write when this one is
  /// over, so it finds the word as this one did.
  __device__ void await(int place, int group, const Context& context) const {
    Signal* const word = this->word(place, group);
    Watchdog watchdog(context);
    for (Epoch found = 0; (found = load_acquire(&word->value)) < 1;)
      if (watchdog.is_due() && watchdog.is_over_without_call(word, 1, found)) break;
    store_relaxed(&word->value, 0);
  }

 private:
  static constexpr int kBlocks = 2, kGroups = GemmWorkspace::kGroups;
  static constexpr int kStep = kGroups * 128;  // threads
  template <class Sums>
  static constexpr int kVectors = decltype(cute::size(Sums{}))::value / 4;

  __device__ static int block_of(int place) { return place * kBlocks + static_cast<int>(blockIdx.x) % kBlocks; }
  template <class Sums>
  __device__ float4* at(int place, int group, int thread) const {
    return sums_ + (block_of(place) * kVectors<Sums> * kStep + group * (kStep / kGroups) + thread);
  }
  __device__ Signal* word(int place, int group) const { return words_ + block_of(place) * kGroups + group; }

  Signal* words_ = nullptr;  // [block][group]: 1: sums are here
  float4* sums_ = nullptr;   // [block][four of a thread's sums][thread]
};

}  // namespace tandem::cuda
