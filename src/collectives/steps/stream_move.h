#pragma once
/// The streams of kernels in which every PE sends to every PE.

#include "collectives/steps/move.h"
#include "collectives/steps/stream_slots.h"

namespace tandem::kernels {

struct StreamMoveArgs {
  Symm<const std::byte> in;
  Symm<std::byte> out;
  Size count;  // bytes: of each PE, or of each pair
  StreamSlots slots;
  int root;
};

struct StreamMoveKernel {
  using Args = StreamMoveArgs;
  static constexpr int kLeastThreads = 512;  // of its roles

  static int suitable_blocks(const Team&, int blocks) { return StreamSlots::suitable_blocks(blocks); }

  template <class Setup>
  static Args prepare(Setup& setup) {
    Args args{};
    args.slots = StreamSlots::of(setup, setup.max_count(), setup.staging_in());
    return args;
  }
};

/// Sends the bytes at from(pe) to each PE, and stores those of PE p at p * count of the output. This PE's own chunks
/// are copied by the senders and the receivers of a lane in turns, which thus have equal work.
template <class Block, class From>
TANDEM_DEVICE void stream_to_all(Block& block, const StreamMoveArgs& a, const From& from) {
  const StreamChunks<std::byte> chunks(block, a.slots, a.count);
  const auto copy_own = [&](auto& role, Size i, bool by_sender) {
    if ((i / StreamSlots::kLanes % 2 == 0) != by_sender) return;
    const Range chunk = chunks.chunk(i);
    std::byte* const to = a.out.local() + role.pe() * a.count + chunk.begin;
    copy_unless_same(role, to, from(role.pe()) + chunk.begin, chunk.size());
  };
  const auto send = [&](auto& role, int lane) {
    for (Size i = lane; i < chunks.count(); i += StreamSlots::kLanes) {
      const Range chunk = chunks.chunk(i);
      for (const int pe : role.peers_from_self()) {
        chunks.await_ready(role, i, pe);
        chunks.await_free(role, i, pe);
        role.copy(role.remote(chunks.slot(role, i, role.pe(), pe), pe), from(pe) + chunk.begin, chunk.size());
      }
      chunks.sent(role, i);
      copy_own(role, i, true);
    }
  };
  const auto receive = [&](auto& role, int lane) {
    const int me = role.pe(), n = role.num_pes();
    for (Size i = lane; i < chunks.count(); i += StreamSlots::kLanes) {
      const Range chunk = chunks.chunk(i);
      copy_own(role, i, false);
      for (int distance = 1; distance < n; ++distance) {  // senders whose next, second, ... PE this is
        const int pe = (me - distance + n) % n;
        chunks.await(role, i, pe);
        role.copy(a.out.local() + pe * a.count + chunk.begin, chunks.slot(role, i, pe, me).local(), chunk.size());
        chunks.release(role, i, pe);
      }
    }
  };
  constexpr int kLanes = StreamSlots::kLanes;
  block.template parallel_for<2>(2 * kLanes, [&](auto& role, int i) {
    if (i < kLanes)
      send(role, i);
    else
      receive(role, i - kLanes);
  });
}

}  // namespace tandem::kernels
