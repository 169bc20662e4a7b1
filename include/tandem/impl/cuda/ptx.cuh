#pragma once
/// The PTX instructions behind the block's operations, one function each (PTX ISA 8.8; section names in the comments).

#include <cstdint>

namespace tandem::cuda {

/// 16 bytes, the widest access of one thread.
struct alignas(16) Vector {
  std::uint32_t word[4];
};

// "Data Movement: ld, st". Data accesses are weak, because signals order them. They bypass L1, which does not help data
// that passes through once.

__device__ inline Vector load_vector(const void* from) {
  Vector v;
  asm volatile("ld.global.L1::no_allocate.v4.u32 {%0, %1, %2, %3}, [%4];"
               : "=r"(v.word[0]), "=r"(v.word[1]), "=r"(v.word[2]), "=r"(v.word[3])
               : "l"(from)
               : "memory");
  return v;
}

__device__ inline void store_vector(void* to, const Vector& v) {
  asm volatile("st.global.v4.u32 [%0], {%1, %2, %3, %4};" ::"l"(to), "r"(v.word[0]), "r"(v.word[1]), "r"(v.word[2]),
               "r"(v.word[3])
               : "memory");
}

// "Memory Consistency Model": release and acquire at system scope.

__device__ inline std::uint64_t load_acquire(const std::uint64_t* from) {
  std::uint64_t value;
  asm volatile("ld.acquire.sys.global.u64 %0, [%1];" : "=l"(value) : "l"(from) : "memory");
  return value;
}

__device__ inline std::uint64_t load_relaxed(const std::uint64_t* from) {
  std::uint64_t value;
  asm volatile("ld.relaxed.sys.global.u64 %0, [%1];" : "=l"(value) : "l"(from) : "memory");
  return value;
}

__device__ inline void store_release(std::uint64_t* to, std::uint64_t value) {
  asm volatile("st.release.sys.global.u64 [%0], %1;" ::"l"(to), "l"(value) : "memory");
}

__device__ inline void store_relaxed(std::uint64_t* to, std::uint64_t value) {
  asm volatile("st.relaxed.sys.global.u64 [%0], %1;" ::"l"(to), "l"(value) : "memory");
}

__device__ inline void add_release(std::uint64_t* to, std::uint64_t value) {
  asm volatile("red.release.sys.global.add.u64 [%0], %1;" ::"l"(to), "l"(value) : "memory");
}

__device__ inline void add_relaxed(std::uint64_t* to, std::uint64_t value) {
  asm volatile("red.relaxed.sys.global.add.u64 [%0], %1;" ::"l"(to), "l"(value) : "memory");
}

__device__ inline void fence_system() { asm volatile("fence.acq_rel.sys;" ::: "memory"); }

/// Orders this thread's generic-proxy accesses before later ones through the async proxy (TMA), "Proxies".
__device__ inline void fence_proxy_async() {
#if __CUDA_ARCH__ >= 900
  asm volatile("fence.proxy.async.global;" ::: "memory");
#endif
}

/// Two packets, one 64-bit element each. An element of a vector access is never torn, but the pair may be.
struct PacketPair {
  std::uint64_t packet[2];
};

__device__ inline void store_packets(void* to, const PacketPair& pair) {
  asm volatile("st.relaxed.sys.global.v2.u64 [%0], {%1, %2};" ::"l"(to), "l"(pair.packet[0]), "l"(pair.packet[1])
               : "memory");
}

__device__ inline PacketPair load_packets(const void* from) {
  PacketPair pair;
  asm volatile("ld.relaxed.sys.global.v2.u64 {%0, %1}, [%2];"
               : "=l"(pair.packet[0]), "=l"(pair.packet[1])
               : "l"(from)
               : "memory");
  return pair;
}

/// Barrier `id` among `threads` threads, "Parallel Synchronization: bar".
__device__ inline void named_barrier(int id, int threads) {
  asm volatile("bar.sync %0, %1;" ::"r"(id), "r"(threads) : "memory");
}

/// Programmatic dependent launch, "griddepcontrol": the previous grid is complete and visible.
__device__ inline void wait_for_previous_grid() {
#if __CUDA_ARCH__ >= 900
  asm volatile("griddepcontrol.wait;" ::: "memory");
#endif
}
__device__ inline void let_next_grid_start() {
#if __CUDA_ARCH__ >= 900
  asm volatile("griddepcontrol.launch_dependents;" ::: "memory");
#endif
}

/// Returns 0, which the compiler does not know and considers different in each thread. Values loaded from an address
/// with it stay in registers of the threads. A value known to be uniform would be moved to uniform registers at once,
/// which waits for the load.
__device__ inline unsigned zero_of_thread() {
  unsigned lower_lanes;
  asm volatile("mov.u32 %0, %lanemask_lt;" : "=r"(lower_lanes));
  return lower_lanes >> 31;
}

/// Returns the nanoseconds of a clock that all SMs share.
__device__ inline std::uint64_t global_timer() {
  std::uint64_t ns;
  asm volatile("mov.u64 %0, %globaltimer;" : "=l"(ns));
  return ns;
}

}  // namespace tandem::cuda
