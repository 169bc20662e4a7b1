#pragma once
/// Broadcast through slots: chunks go from PE to PE, each to a slot of the next one.
///
/// The bytes leave every PE but the last once: the rate of one link for any n, after n-1 chunks. A PE forwards a chunk
/// from its slot and copies it to its output. Peers access no buffer of the caller, so these may lie anywhere. It needs
/// stores to the next PE, so one node only. In-place allowed.

#include "base/gpu_kernel.h"
#include "collectives/steps/stream_move.h"

namespace tandem::kernels {

struct BroadcastStream : StreamMoveKernel {
  template <class Block>
  TANDEM_DEVICE static void run(Block& block, const Args& a) {
    const StreamChunks<std::byte> chunks(block, a.slots, a.count);
    block.template parallel_for<4>(StreamSlots::kLanes, [&](auto& role, int lane) {
      for (Size i = lane; i < chunks.count(); i += StreamSlots::kLanes) pass(role, a, chunks, i);
    });
  }

 private:
  template <class Role>
  TANDEM_DEVICE static void pass(Role& role, const Args& a, const StreamChunks<std::byte>& chunks, Size i) {
    const int me = role.pe(), n = role.num_pes();
    const int previous = (me - 1 + n) % n, next = (me + 1) % n;
    const bool is_root = me == a.root;
    const Range chunk = chunks.chunk(i);
    const std::byte* from = a.in.local() + chunk.begin;
    if (!is_root) {
      chunks.await(role, i, previous);
      from = chunks.slot(role, i, previous, me).local();
    }
    if (next != a.root) {
      chunks.await_ready(role, i, next);
      chunks.await_free(role, i, next);
      role.copy(role.remote(chunks.slot(role, i, me, next), next), from, chunk.size());
      chunks.sent(role, i, next);
    }
    copy_unless_same(role, a.out.local() + chunk.begin, from, chunk.size());
    if (!is_root) chunks.release(role, i, previous);
  }
};

TANDEM_GPU_KERNEL(BroadcastStream, 512);

}  // namespace tandem::kernels
