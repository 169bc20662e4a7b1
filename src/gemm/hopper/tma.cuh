#pragma once
/// The PTX instructions by which tiles enter and leave shared memory, each as a function (PTX ISA 8.8).

#include <cuda.h>

#include <cstdint>

namespace tandem::cuda {

__device__ inline std::uint32_t shared_address(const void* address) {
  return static_cast<std::uint32_t>(__cvta_generic_to_shared(address));
}

/// Four 8x8 matrices of 16-bit elements. Lane i gives the address of row i % 8 of matrix i / 8. It holds two neighbours
/// of row i / 4 of each matrix.
struct MatrixWords {
  std::uint32_t word[4];
};
/// "stmatrix".
__device__ inline void store_matrices(std::uint32_t to, const MatrixWords& m) {
  asm volatile("stmatrix.sync.aligned.m8n8.x4.shared.b16 [%0], {%1, %2, %3, %4};" ::"r"(to), "r"(m.word[0]),
               "r"(m.word[1]), "r"(m.word[2]), "r"(m.word[3])
               : "memory");
}
/// "ldmatrix".
__device__ inline MatrixWords load_matrices(std::uint32_t from) {
  MatrixWords m;
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
               : "=r"(m.word[0]), "=r"(m.word[1]), "=r"(m.word[2]), "=r"(m.word[3])
               : "r"(from)
               : "memory");
  return m;
}

/// "stmatrix.trans": stores the transposes. Lane i gives the address of column i % 8.
__device__ inline void store_transposed_matrices(std::uint32_t to, const MatrixWords& m) {
  asm volatile("stmatrix.sync.aligned.m8n8.x4.trans.shared.b16 [%0], {%1, %2, %3, %4};" ::"r"(to), "r"(m.word[0]),
               "r"(m.word[1]), "r"(m.word[2]), "r"(m.word[3])
               : "memory");
}
/// Stores two bytes.
__device__ inline void store_pair(std::uint32_t to, std::uint32_t pair) {
  asm volatile("st.shared.b16 [%0], %1;" ::"r"(to), "h"(static_cast<std::uint16_t>(pair)) : "memory");
}

/// Stores the lowest byte.
__device__ inline void store_byte(std::uint32_t to, std::uint32_t byte) {
  asm volatile("st.shared.b8 [%0], %1;" ::"r"(to), "r"(byte) : "memory");
}

/// Orders this thread's writes to shared memory before TMA's reads there.
__device__ inline void fence_shared_before_tma() { asm volatile("fence.proxy.async.shared::cta;" ::: "memory"); }

/// "cp.async.bulk.tensor": loads the box at (row, col) of the matrix to shared memory. Its bytes arrive at the
/// mbarrier.
__device__ inline void load_box(const CUtensorMap* map, std::uint32_t to, int col, int row, const void* mbarrier) {
  asm volatile(
      "cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1, {%2, %3}], [%4];" ::"r"(
          to),
      "l"(reinterpret_cast<std::uint64_t>(map)), "r"(col), "r"(row), "r"(shared_address(mbarrier))
      : "memory");
}
/// Loads a box to the same place in all blocks of the cluster whose bits are set in `blocks`.
__device__ inline void load_box_to_blocks(const CUtensorMap* map, std::uint32_t to, int col, int row,
                                          const void* mbarrier, std::uint16_t blocks) {
  asm volatile(
      "cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster [%0], [%1, {%2, "
      "%3}], [%4], %5;" ::"r"(to),
      "l"(reinterpret_cast<std::uint64_t>(map)), "r"(col), "r"(row), "r"(shared_address(mbarrier)), "h"(blocks)
      : "memory");
}
/// "cp.async.bulk.prefetch.tensor": prefetches the box to the L2 cache.
__device__ inline void prefetch_box(const CUtensorMap* map, int col, int row) {
  asm volatile("cp.async.bulk.prefetch.tensor.2d.L2.global [%0, {%1, %2}];" ::"l"(reinterpret_cast<std::uint64_t>(map)),
               "r"(col), "r"(row)
               : "memory");
}
/// "prefetch": prefetches a line of 128 bytes to the L1 cache.
__device__ inline void prefetch_line(const void* address) {
  asm volatile("prefetch.global.L1 [%0];" ::"l"(address) : "memory");
}
/// Stores a box, in one group with the next stores.
__device__ inline void store_box_with_next(const CUtensorMap* map, std::uint32_t from, int col, int row) {
  asm volatile("cp.async.bulk.tensor.2d.global.shared::cta.bulk_group [%0, {%1, %2}], [%3];" ::"l"(
                   reinterpret_cast<std::uint64_t>(map)),
               "r"(col), "r"(row), "r"(from)
               : "memory");
}
/// Stores a box and ends the group.
__device__ inline void store_box(const CUtensorMap* map, std::uint32_t from, int col, int row) {
  asm volatile(
      "cp.async.bulk.tensor.2d.global.shared::cta.bulk_group [%0, {%1, %2}], [%3];\n\t"
      "cp.async.bulk.commit_group;" ::"l"(reinterpret_cast<std::uint64_t>(map)),
      "r"(col), "r"(row), "r"(from)
      : "memory");
}

/// Waits until all stores of this thread but the last `Pending` have read shared memory.
template <int Pending>
__device__ inline void wait_for_reads() {
  asm volatile("cp.async.bulk.wait_group.read %0;" ::"n"(Pending) : "memory");
}
/// Waits until all stores of this thread are done.
__device__ inline void wait_for_stores() { asm volatile("cp.async.bulk.wait_group 0;" ::: "memory"); }

__device__ inline void prefetch_tensor_map(const CUtensorMap* map) {
  asm volatile("prefetch.tensormap [%0];" ::"l"(reinterpret_cast<std::uint64_t>(map)) : "memory");
}

}  // namespace tandem::cuda
