#pragma once
/// All-reduce through slots: every PE sends each peer that peer's shard, sums its own, and sends the sums to all PEs.
///
/// Fixed order: in[0] + in[1] + ... + in[n-1], rounded to T once.
/// Each link carries 2 (n-1)/n of the data, in two steps that run side by side. Peers access no buffer of the caller,
/// so these may lie anywhere. It needs stores to every PE, so one node only. In-place allowed: a sum comes after the
/// elements that it replaces were sent.

#include "base/gpu_kernel.h"
#include "collectives/steps/stream_reduce.h"

namespace tandem::kernels {

template <class T>
struct AllReduceStream {
  static constexpr int kLeastThreads = 512;  // of its roles

  struct Args {
    Symm<const T> in;
    Symm<T> out;
    StreamSlots inputs;  // this PE's shard of the peers' inputs
    StreamSlots sums;    // the peers' sums of their shards
    ReduceOp op = ReduceOp::kSum;
    Size count = 0;
    Accumulator<T> scale = 1;
  };

  static int suitable_blocks(const Team&, int blocks) { return StreamSlots::suitable_blocks(blocks); }

  template <class Setup>
  static Args prepare(Setup& setup) {
    Args a;
    const Size shard = split(setup.max_count(), setup.pes(), 16).step() * Size{sizeof(T)};
    a.inputs = StreamSlots::of(setup, shard, setup.staging_in(), "inputs");
    a.sums = StreamSlots::of(setup, shard, setup.staging_out(), "sums");
    return a;
  }

  /// A PE whose inputs have come has begun this call, so its slots for sums need no other `ready`.
  template <class Block>
  TANDEM_DEVICE static void run(Block& block, const Args& a) {
    const Call call(block, a);
    block.template parallel<3, 5, 5, 3>(
        [&](auto& role) { call.send(role, a); }, [&](auto& role) { call.reduce(role, a, 0); },
        [&](auto& role) { call.reduce(role, a, 1); }, [&](auto& role) { call.gather(role, a); });
  }

 private:
  struct Call {
    Split shards;
    StreamChunks<T> inputs;
    StreamChunks<T> sums;

    template <class Block>
    TANDEM_DEVICE Call(Block& block, const Args& a)
        : shards(split(a.count, block.num_pes(), 16)), inputs(block, a.inputs, shards.step()), sums(inputs, a.sums) {}

    /// The elements of chunk i of a PE's shard; the last shards may be shorter.
    TANDEM_DEVICE Range chunk(int owner, Size i) const {
      const Range shard = shards[owner], of_shard = inputs.chunk(i);
      return {min(shard.begin + of_shard.begin, shard.end), min(shard.begin + of_shard.end, shard.end)};
    }

    template <class Role>
    TANDEM_DEVICE void send(Role& role, const Args& a) const {
      for (Size i = 0; i < inputs.count(); ++i) {
        for (const int pe : role.peers_from_self()) {
          inputs.await_ready(role, i, pe);
          inputs.await_free(role, i, pe);
          T* const slot = role.remote(inputs.slot(role, i, role.pe(), pe), pe);
          fill_slot<T>(role, slot, a.in.local(), chunk(pe, i), a.op, a.scale);
        }
        inputs.sent(role, i);
      }
    }

    template <class Role>
    TANDEM_DEVICE void reduce(Role& role, const Args& a, Size first) const {
      const int me = role.pe();
      for (Size i = first; i < inputs.count(); i += 2) {
        const Range mine = chunk(me, i);
        for (const int pe : role.peers_from_self()) {
          inputs.await(role, i, pe);
          sums.await_free(role, i, pe);
        }
        reduce_slots<T>(role, inputs, i, a.in.local(), mine, a.op, a.scale, [&](Range tile, const auto& values) {
          role.store(a.out.local() + mine.begin, tile, values);
          for (const int pe : role.peers_from_self())
            role.store(role.remote(sums.slot(role, i, me, pe), pe), tile, values);
        });
        for (const int pe : role.peers_from_self()) inputs.release(role, i, pe);
        sums.sent(role, i);
      }
    }

    template <class Role>
    TANDEM_DEVICE void gather(Role& role, const Args& a) const {
      for (Size i = 0; i < sums.count(); ++i)
        for (const int pe : role.peers_from_self()) {
          const Range theirs = chunk(pe, i);
          sums.await(role, i, pe);
          role.copy(a.out.local() + theirs.begin, sums.slot(role, i, pe, role.pe()).local(), theirs.size());
          sums.release(role, i, pe);
        }
    }
  };
};

TANDEM_GPU_KERNELS(AllReduceStream, 512);

}  // namespace tandem::kernels
