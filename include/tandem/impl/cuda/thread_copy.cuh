#pragma once
/// Copies by `Threads` concurrent threads, from the view of thread `thread`. No thread waits for the others.

#include <cstdint>

#include "tandem/impl/cuda/ptx.cuh"
#include "tandem/range.h"

namespace tandem::cuda {

/// The same code serves whole steps and the last one, with eight accesses in flight in both.
template <int Threads>
__device__ inline void copy_vectors(int thread, char* to, const char* from, Size vectors) {
  constexpr int kInFlight = 8;
#pragma unroll 1
  for (Size at = thread; at < vectors; at += kInFlight * Threads) {
    const Size left = (vectors - at + Threads - 1) / Threads;  // vectors left for this thread
    Vector v[kInFlight];
#pragma unroll
    for (int u = 0; u < kInFlight; ++u)
      if (u < left) v[u] = load_vector(from + (at + u * Threads) * 16);
#pragma unroll
    for (int u = 0; u < kInFlight; ++u)
      if (u < left) store_vector(to + (at + u * Threads) * 16, v[u]);
  }
}

template <int Threads, class Element>
__device__ inline void copy_elements(int thread, Element* to, const Element* from, Size count) {
#pragma unroll 1
  for (Size at = thread; at < count; at += Threads) to[at] = from[at];
}

/// Uses 16-byte accesses if both ends are aligned, else 4 bytes, else one byte.
template <int Threads>
__device__ inline void copy_bytes(int thread, char* to, const char* from, Size bytes) {
  const auto low_bits = reinterpret_cast<std::uintptr_t>(to) | reinterpret_cast<std::uintptr_t>(from);
  Size done = 0;
  if (low_bits % 16 == 0) {
    copy_vectors<Threads>(thread, to, from, bytes / 16);
    done = bytes / 16 * 16;
  } else if (low_bits % 4 == 0) {
    copy_elements<Threads>(thread, reinterpret_cast<std::uint32_t*>(to), reinterpret_cast<const std::uint32_t*>(from),
                           bytes / 4);
    done = bytes / 4 * 4;
  }
  copy_elements<Threads>(thread, to + done, from + done, bytes - done);
}

}  // namespace tandem::cuda
