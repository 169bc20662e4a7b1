#pragma once
/// Pipelined broadcast down a chain, by stores: a PE forwards each chunk to the next one as it arrives.
///
/// Each link carries the bytes once, and the last PE is n-2 chunks late, so it is for large sizes. A PE starts its next
/// call as late as it ended the last one. The previous PE need not wait for that: the first bytes of a call go through
/// staging. Every PE has it twice, for alternating calls. The PE stores the rest directly into the output when the next
/// one is `ready`. It waits for that in each call. A PE that is ready for call e has read all staging of call e-1. That
/// is the credit for call e+1, which uses the same half. It is for one node; between nodes it is the same as
/// `BroadcastTree<1>`. In-place allowed.

#include "base/gpu_kernel.h"
#include "collectives/broadcast/tree.h"

namespace tandem::kernels {

struct BroadcastChainArgs : MoveArgs {
  Symm<std::byte> staging;  // [block][call % 2][staged]
  Size staged;              // bytes of a block's part that go through staging
};

struct BroadcastChain : MoveKernel {
  using Args = BroadcastChainArgs;

  template <class Setup>
  static Args prepare(Setup& setup) {
    Args args{};
    static_cast<MoveArgs&>(args) = MoveKernel::prepare(setup);
    if (!setup.team().one_node()) return args;
    args.staged = min(kMostStaged, split(setup.max_count(), setup.blocks(), 16).step());
    args.staging = setup.template symmetric<std::byte>(2 * setup.blocks() * args.staged, "staging");
    return args;
  }

  template <class Block>
  TANDEM_DEVICE static void run(Block& block, const Args& a) {
    if (!block.team().one_node()) return BroadcastTree<1>::run(block, a);
    const int n = block.num_pes();
    const int place = (block.pe() - a.root + n) % n;
    const int next = (block.pe() + 1) % n;
    const bool is_last = place == n - 1;
    const Range part = own_part(block, a.count);
    const Epoch epoch = block.next_epoch(a.epochs);
    const ChunkSignals arrived(block, a.arrived, a.root, epoch);
    const Chunks chunks(part.size(), Size{64} << 10, Size{32} << 10, 4);
    const Symm<std::byte> out = a.out + part.begin;
    const Symm<std::byte> staging = a.staging + (2 * Size{block.index()} + static_cast<Size>(epoch % 2)) * a.staged;
    const std::byte* const in = place == 0 ? a.in.local() + part.begin : out.local();

    if (place > 0) block.notify(block.slots(a.ready) + block.pe(), epoch, (block.pe() + n - 1) % n);
    bool next_is_ready = is_last;
    const auto wait_for_next = [&] {
      if (!next_is_ready) block.wait(block.slots(a.ready) + next, 1, epoch);
      next_is_ready = true;
    };
    for (Size i = 0; i < chunks.count(); ++i) {
      const Range chunk = chunks.of({0, part.size()}, i);
      const bool is_staged = chunk.end <= a.staged;
      if (place > 0) arrived.wait(block, i);
      if (!is_staged) wait_for_next();
      const std::byte* const from = is_staged && place > 0 ? staging.local() : in;
      store(block, chunk, from, is_last ? nullptr : block.remote(is_staged ? staging : out, next),
            from == out.local() ? nullptr : out.local());
      if (!is_last) block.notify(arrived.word(i), arrived.value(i), next);
    }
    wait_for_next();
  }

 private:
  /// Two chunks. A PE is late by one chunk and about 8 us, which is 11 MB for 128 blocks at the 370 GB/s of a link.
  static constexpr Size kMostStaged = Size{128} << 10;

  /// Copies the bytes `range` of `from` to the same places of `onward` and `own`, unless these are null. The bytes are
  /// loaded once, and the cost of storing the own ones is hidden behind the link.
  template <class Block>
  TANDEM_DEVICE static void store(Block& block, Range range, const std::byte* from, std::byte* onward, std::byte* own) {
    if (!suits_fragments(onward, from) || !suits_fragments(own, from)) {
      if (onward != nullptr) block.copy(onward + range.begin, from + range.begin, range.size());
      if (own != nullptr) block.copy(own + range.begin, from + range.begin, range.size());
      return;
    }
    if (onward == nullptr && own == nullptr) return;
    for (const Range tile : block.template tiles<std::byte>(range)) {
      const auto values = block.template load<std::byte>(from, tile);
      if (onward != nullptr) block.store(onward, tile, values);
      if (own != nullptr) block.store(own, tile, values);
    }
  }
};

TANDEM_GPU_KERNEL(BroadcastChain, 512);
TANDEM_GPU_BETWEEN_NODES(BroadcastChain);

}  // namespace tandem::kernels
