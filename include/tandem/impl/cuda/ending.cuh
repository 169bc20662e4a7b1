#pragma once
/// The end of threads whose wait timed out. PTX ISA 9.0, chapters named in quotes.

#include "tandem/impl/cuda/ptx.cuh"

namespace tandem::cuda {

/// Barrier `id` among `threads` threads. Returns whether the condition holds for any of them, "Parallel
/// Synchronization: bar.red".
__device__ inline bool named_barrier_or(int id, int threads, bool mine) {
  unsigned any;
  asm volatile("{\n.reg .pred p, q;\nsetp.ne.u32 p, %3, 0;\nbar.red.or.pred q, %1, %2, p;\nselp.u32 %0, 1, 0, q;\n}"
               : "=r"(any)
               : "r"(id), "r"(threads), "r"(static_cast<unsigned>(mine))
               : "memory");
  return any != 0;
}

/// Ends the calling threads, "Control Flow: exit": barriers of the whole block no longer count them.
[[noreturn]] __device__ inline void end_threads() {
  asm volatile("exit;" ::: "memory");
  __builtin_unreachable();
}

}  // namespace tandem::cuda
