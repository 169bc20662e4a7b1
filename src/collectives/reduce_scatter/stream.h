#pragma once
/// Reduce-scatter through slots: every PE stores each peer's shard of its input to slots of that peer, which sums them.
///
/// Fixed order: in[0] + in[1] + ... + in[n-1], rounded to T once.
/// Each link carries (n-1)/n of the input, in one step. Peers access no buffer of the caller, so these may lie
/// anywhere. It needs stores to every PE, so one node only. In-place allowed: only the owner reads its shard.

#include "base/gpu_kernel.h"
#include "collectives/steps/stream_reduce.h"

namespace tandem::kernels {

template <class T>
struct ReduceScatterStream {
  static constexpr int kLeastThreads = 512;  // of its roles

  struct Args {
    Symm<const T> in;
    Symm<T> out;
    StreamSlots slots;
    ReduceOp op = ReduceOp::kSum;
    Size count = 0;
    Accumulator<T> scale = 1;
  };

  static int suitable_blocks(const Team&, int blocks) { return StreamSlots::suitable_blocks(blocks); }

  template <class Setup>
  static Args prepare(Setup& setup) {
    Args a;
    a.slots = StreamSlots::of(setup, setup.max_count() * Size{sizeof(T)}, setup.staging_in());
    return a;
  }

  template <class Block>
  TANDEM_DEVICE static void run(Block& block, const Args& a) {
    const StreamChunks<T> chunks(block, a.slots, a.count);
    const auto send = [&](auto& role, Size first) {
      for (Size i = first; i < chunks.count(); i += 2) {
        for (const int pe : role.peers_from_self()) {
          chunks.await_ready(role, i, pe);
          chunks.await_free(role, i, pe);
          T* const slot = role.remote(chunks.slot(role, i, role.pe(), pe), pe);
          fill_slot<T>(role, slot, a.in.local() + pe * a.count, chunks.chunk(i), a.op, a.scale);
        }
        chunks.sent(role, i);
      }
    };
    const auto reduce = [&](auto& role, Size first) {
      for (Size i = first; i < chunks.count(); i += 2) {
        const Range chunk = chunks.chunk(i);
        for (const int pe : role.peers_from_self()) chunks.await(role, i, pe);
        reduce_slots<T>(role, chunks, i, a.in.local() + role.pe() * a.count, chunk, a.op, a.scale,
                        [&](Range tile, const auto& sums) { role.store(a.out.local() + chunk.begin, tile, sums); });
        for (const int pe : role.peers_from_self()) chunks.release(role, i, pe);
      }
    };
    // A thread that reduces has fewer bytes in flight than one that copies.
    block.template parallel<2, 2, 6, 6>([&](auto& role) { send(role, 0); }, [&](auto& role) { send(role, 1); },
                                        [&](auto& role) { reduce(role, 0); }, [&](auto& role) { reduce(role, 1); });
  }
};

TANDEM_GPU_KERNELS(ReduceScatterStream, 512);

}  // namespace tandem::kernels
