#pragma once
/// Broadcast through the root's staging: the root copies its input there, and every PE reads it from there.
///
/// It takes one step, in rounds of a chunk; a chunk is read while the next one is copied. The root moves the bytes once
/// for any n. It only waits for credits, kSlots rounds later, so a PE that begins late delays no other one. It is for
/// middle sizes where PEs begin at different times. It needs loads from the root, so one node only. In-place allowed.

#include "base/gpu_kernel.h"
#include "tandem/block.h"

namespace tandem::kernels {

struct BroadcastStaged {
  static constexpr Size kSlots = 16;
  static constexpr Size kMostChunk = Size{32} << 10;

  struct Args {
    Symm<const std::byte> in;
    Symm<std::byte> out;
    Size count;               // bytes
    Symm<std::byte> staging;  // [block][kSlots][chunk]
    Size chunk;               // bytes
    Signals arrived;          // [block][PE]: rounds that this root has staged
    Signals released;         // [block][reader]: rounds that the reader has read
    Epochs rounds;            // [block]: rounds over all calls
    int root;
  };

  template <class Setup>
  static Args prepare(Setup& setup) {
    Args args{};
    args.chunk = max(16, min(kMostChunk, split(setup.max_count(), setup.blocks(), 16).step()));
    args.staging = setup.template symmetric<std::byte>(kSlots * setup.blocks() * args.chunk, "staging");
    args.arrived = setup.slots("arrived");
    args.released = setup.slots("released");
    args.rounds = setup.epochs();
    return args;
  }

  template <class Block>
  TANDEM_DEVICE static void run(Block& block, const Args& a) {
    const Range part = split(a.count, block.count(), 16)[block.index()];
    const Size rounds = ceil_div(part.size(), a.chunk);
    const Epoch first = block.next_epoch(a.rounds, static_cast<Epoch>(rounds));
    for (Size i = 0; i < rounds; ++i) {
      const Epoch round = first + static_cast<Epoch>(i);
      const Size begin = part.begin + i * a.chunk;
      const Range chunk{begin, min(begin + a.chunk, part.end)};
      const Symm<std::byte> slot =
          a.staging + (kSlots * block.index() + static_cast<Size>(round % Epoch{kSlots})) * a.chunk;
      if (block.pe() == a.root)
        give(block, a, chunk, slot.local(), round);
      else
        take(block, a, chunk, slot, round);
    }
  }

 private:
  template <class Block>
  TANDEM_DEVICE static void give(Block& block, const Args& a, Range chunk, std::byte* slot, Epoch round) {
    const int readers = block.num_pes() - 1;
    const std::byte* const from = a.in.local() + chunk.begin;
    if (round > Epoch{kSlots} && readers > 0) block.wait(block.slots(a.released), readers, round - Epoch{kSlots});
    if (readers > 0) block.copy(slot, from, chunk.size());
    for (const int pe : block.peers_from_self()) block.notify(block.slots(a.arrived) + a.root, round, pe);
    if (a.out.local() != a.in.local()) block.copy(a.out.local() + chunk.begin, from, chunk.size());
  }

  template <class Block>
  TANDEM_DEVICE static void take(Block& block, const Args& a, Range chunk, Symm<std::byte> slot, Epoch round) {
    const int n = block.num_pes();
    const int reader = (block.pe() - a.root - 1 + n) % n;
    block.wait(block.slots(a.arrived) + a.root, 1, round);
    block.copy(a.out.local() + chunk.begin, block.remote(slot, a.root), chunk.size());
    block.signal_after_reads(block.slots(a.released) + reader, round, a.root);
  }
};

TANDEM_GPU_KERNEL(BroadcastStaged, 512);

}  // namespace tandem::kernels
