#pragma once
/// Copies by the bulk copy engine of compute capability 9 and newer (TMA): bytes in flight take no registers.
///
/// One thread asks for pieces, which go through a ring in shared memory: from the source to a place, and from there to
/// the target. PTX ISA, "Data Movement: cp.async.bulk", "mbarrier", and "Async proxy".

#include <cstddef>
#include <cstdint>

#include "tandem/impl/cuda/ptx.cuh"
#include "tandem/range.h"

namespace tandem::cuda {

/// The shared memory of one actor that copies in bulk.
struct alignas(128) BulkRing {
  static constexpr int kPlaces = 6;
  static constexpr unsigned kPieceBytes = 4096;  // a multiple of 16
  /// So many stores may still read their places when the one before them has its next piece.
  static constexpr int kUnread = 2;
  static_assert(kUnread < kPlaces);

  std::byte pieces[kPlaces][kPieceBytes];
  std::uint64_t arrived[kPlaces];  // mbarriers, valid within a copy
};

#if __CUDA_ARCH__ >= 900

__device__ inline std::uint32_t shared_address(const void* shared) {
  return static_cast<std::uint32_t>(__cvta_generic_to_shared(shared));
}

/// Returns the bytes of dynamic shared memory that this launch has.
__device__ inline unsigned dynamic_shared_bytes() {
  unsigned bytes;
  asm("mov.u32 %0, %dynamic_smem_size;" : "=r"(bytes));
  return bytes;
}

/// Loads a piece. Its mbarrier completes the phase when the bytes are there.
__device__ inline void load_piece(std::byte* to, const std::byte* from, unsigned bytes, std::uint64_t* arrived) {
  const std::uint32_t barrier = shared_address(arrived);
  asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(barrier), "r"(bytes) : "memory");
  asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];" ::"r"(
                   shared_address(to)),
               "l"(__cvta_generic_to_global(from)), "r"(bytes), "r"(barrier)
               : "memory");
}
__device__ inline void await_piece(const std::uint64_t* arrived, unsigned parity) {
  asm volatile(
      "{\n"
      ".reg .pred complete;\n"
      "again:\n"
      "mbarrier.try_wait.parity.shared::cta.b64 complete, [%0], %1;\n"
      "@!complete bra again;\n"
      "}" ::"r"(shared_address(arrived)),
      "r"(parity)
      : "memory");
}
/// Stores a piece, as a group of its own.
__device__ inline void store_piece(std::byte* to, const std::byte* from, unsigned bytes) {
  asm volatile("cp.async.bulk.global.shared::cta.bulk_group [%0], [%1], %2;" ::"l"(__cvta_generic_to_global(to)),
               "r"(shared_address(from)), "r"(bytes)
               : "memory");
  asm volatile("cp.async.bulk.commit_group;" ::: "memory");
}
/// Waits until all stores but the last `Unread` have read shared memory.
template <int Unread>
__device__ inline void await_stores_read() {
  asm volatile("cp.async.bulk.wait_group.read %0;" ::"n"(Unread) : "memory");
}
/// Waits until this thread's stores are complete and visible to it.
__device__ inline void await_stores() { asm volatile("cp.async.bulk.wait_group 0;" ::: "memory"); }

__device__ inline void begin_ring(BulkRing& ring) {
  for (std::uint64_t& barrier : ring.arrived)
    asm volatile("mbarrier.init.shared::cta.b64 [%0], 1;" ::"r"(shared_address(&barrier)) : "memory");
  asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
  fence_proxy_async_all();
}
/// A later copy may be another thread's, so it has mbarriers of its own.
__device__ inline void end_ring(BulkRing& ring) {
  for (std::uint64_t& barrier : ring.arrived)
    asm volatile("mbarrier.inval.shared::cta.b64 [%0];" ::"r"(shared_address(&barrier)) : "memory");
}

/// Copies between global arrays at multiples of 16 bytes; `bytes` is one too. It is one thread's, whose earlier
/// accesses, and what they have acquired, come before. A later release covers it. A call costs little beside
/// the bytes, and its registers are free for the caller's values.
__device__ __noinline__ inline void copy_through(BulkRing& ring, std::byte* to, const std::byte* from, Size bytes) {
  constexpr Size kPiece = BulkRing::kPieceBytes;
  begin_ring(ring);
  Size asked = 0;
  int free = 0;
  const auto ask = [&] {
    const Size piece = min(kPiece, bytes - asked);
    load_piece(ring.pieces[free], from + asked, static_cast<unsigned>(piece), &ring.arrived[free]);
    asked += piece;
    free = free + 1 < BulkRing::kPlaces ? free + 1 : 0;
  };
#pragma unroll 1
  for (int i = 0; i < BulkRing::kPlaces && asked < bytes; ++i) ask();
  int place = 0;
  unsigned parity = 0;
#pragma unroll 1
  for (Size stored = 0; stored < bytes;) {
    const Size piece = min(kPiece, bytes - stored);
    await_piece(&ring.arrived[place], parity);
    store_piece(to + stored, ring.pieces[place], static_cast<unsigned>(piece));
    stored += piece;
    if (++place == BulkRing::kPlaces) {
      place = 0;
      parity ^= 1;
    }
    if (asked < bytes && stored > BulkRing::kUnread * kPiece) {
      await_stores_read<BulkRing::kUnread>();
      ask();
    }
  }
  await_stores();
  fence_proxy_async_all();
  end_ring(ring);
}

#endif

}  // namespace tandem::cuda
