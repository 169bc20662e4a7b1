#pragma once
/// The order of the two warps that store a tile, of which the later one sends the tile's signals.

#include "gemm/hopper/tma.cuh"
#include "tandem/impl/cuda/ptx.cuh"

namespace tandem::cuda {

/// Called by one thread of each warp when its stores are done. `stored`, in shared memory, counts the calls of all
/// tiles at its place. Returns whether the other warp was earlier. The calling thread may then announce both warps'
/// stores.
__device__ inline bool is_second_to_store(unsigned& stored) {
  fence_proxy_async();
  unsigned before = 0;
  asm volatile("atom.acq_rel.cta.shared::cta.add.u32 %0, [%1], 1;"
               : "=r"(before)
               : "r"(shared_address(&stored))
               : "memory");
  return before % 2 != 0;
}

}  // namespace tandem::cuda
