#pragma once
/// Common parts of kernels that move bytes without reducing them: arguments, and the signals of a pipeline.

#include "collectives/steps/chunk_epoch.h"
#include "collectives/steps/quiet_at_end.h"
#include "tandem/block.h"

namespace tandem::kernels {

/// Chunks of a pipeline that may be under way to one PE between two fences.
inline constexpr Size kWindow = 8;

struct MoveArgs {
  Symm<const std::byte> in;
  Symm<std::byte> out;
  Size count;     // bytes: of each PE, or of each pair
  Signals ready;  // [block][PE]: that PE has started this call: its buffers may be written (read, if it is the source)
  Signals arrived;  // [block][PE], in a pipeline [block][PE][kWindow]: that PE's data is here, or it has read this PE's
  Epochs epochs;    // [block]
  int root;
};

/// The base of kernels with these arguments. A plan always launches the same grid, so that all blocks' epochs agree.
///
/// No signal is ever cleared, and every one of them is safe for this reason. A PE writes a peer's buffer in call e only
/// after that peer's `ready` word has reached e. The peer writes the word after it has finished call e-1 and all
/// earlier work of its stream. A PE ends only after all writes of its peers have arrived. Even a root that waits for no
/// data is thus never more than one call ahead of a PE that it writes to. `ready` is its credit for exactly one call.
struct MoveKernel {
  using Args = MoveArgs;

  template <class Setup>
  static Args prepare(Setup& setup) {
    Args args{};
    args.ready = setup.slots("ready");
    args.arrived = setup.signals(Size{setup.blocks()} * setup.pes() * kWindow, "arrived");
    args.epochs = setup.epochs();
    return args;
  }
};

/// Returns this block's part of `bytes` bytes.
template <class Block>
TANDEM_DEVICE Range own_part(const Block& block, Size bytes) {
  return split(bytes, block.count(), 16)[block.index()];
}

/// Copies between local addresses. It does nothing if they are the same (in-place calls).
template <class Block>
TANDEM_DEVICE void copy_unless_same(Block& block, std::byte* to, const std::byte* from, Size bytes) {
  if (to != from) block.copy(to, from, bytes);
}

/// Waits for this block's slot of every PE but this one.
template <class Block>
TANDEM_DEVICE void wait_peers(Block& block, Signals words, Epoch value) {
  for (int pe : block.peers_from_self()) block.wait(block.slots(words) + pe, 1, value);
}

/// Returns whether fragments of bytes at these addresses are 16-byte accesses on GPUs. Otherwise a copy is faster.
TANDEM_DEVICE inline bool suits_fragments(const std::byte* to, const std::byte* from) {
  return ((reinterpret_cast<std::uintptr_t>(to) | reinterpret_cast<std::uintptr_t>(from)) & 15) == 0;
}

/// Puts `bytes` bytes from `from(pe)` to the `to` of every peer, the next one first, once all peers are ready. It also
/// copies this PE's bytes, unless they are there already (in-place calls). It notifies each peer in its slot [this
/// block][this PE] of `arrived`. In a `kSame` call all addresses of `from` are the same, and the bytes are loaded once.
template <bool kSame, class Block, class From>
TANDEM_DEVICE void put_to_all(Block& block, const MoveArgs& a, Symm<std::byte> to, Size bytes, Epoch epoch,
                              const From& from) {
  const int me = block.pe();
  const std::byte* const own = from(me);
  if (!block.team().one_node()) {
    for (const int pe : block.peers_from_self()) {
      block.wait(block.slots(a.ready) + pe, 1, epoch);
      block.put_signal_nbi(to, from(pe), bytes, block.slots(a.arrived) + me, epoch, pe);
    }
    copy_unless_same(block, to.local(), own, bytes);
    return;
  }
  for (const int pe : block.peers_from_self()) block.wait(block.slots(a.ready) + pe, 1, epoch);
  if (suits_fragments(to.local(), own)) {
    // The own bytes alternate with the peers', so that their cost is hidden behind the link.
    for (const Range tile : block.template tiles<std::byte>({0, bytes})) {
      auto values = block.template load<std::byte>(own, tile);
      if (to.local() != own) block.store(to.local(), tile, values);
      for (const int pe : block.peers_from_self()) {
        if constexpr (!kSame) values = block.template load<std::byte>(from(pe), tile);
        block.store(block.remote(to, pe), tile, values);
      }
    }
  } else {
    for (const int pe : block.peers_from_self()) block.copy(block.remote(to, pe), from(pe), bytes);
    copy_unless_same(block, to.local(), own, bytes);
  }
  // One release covers all peers. Separate ones would each wait for the stores before them.
  block.notify_all(a.arrived, epoch);
}

/// Uses put_signal_nbi, or within a node stores, which need no quiet.
template <class Block>
TANDEM_DEVICE void put_and_notify(Block& block, Symm<std::byte> to, const std::byte* from, Size bytes, Signals word,
                                  Epoch epoch, int pe) {
  if (!block.team().one_node()) return block.put_signal_nbi(to, from, bytes, word, epoch, pe);
  block.copy(block.remote(to, pe), from, bytes);
  block.notify(word, epoch, pe);
}

/// Ends a kernel that moved its bytes with the functions above. Peers' stores were announced to it, and this PE's
/// stores are visible when the kernel ends.
template <class Block>
TANDEM_DEVICE void finish_puts(Block& block) {
  if (!block.team().one_node()) quiet_at_end(block);
}

/// The chunks of a part of `bytes` bytes in a pipeline: about `about` chunks, each large enough for a signal and at
/// most `most_bytes` long. Parts that would need more chunks than signals can distinguish get longer ones.
class Chunks {
 public:
  TANDEM_DEVICE explicit Chunks(Size bytes, Size most_bytes = Size{256} << 10, Size least_bytes = Size{16} << 10,
                                Size about = 16)
      : step_(chunk_step(bytes, min(max(round_up(ceil_div(bytes, about), 16), least_bytes), most_bytes))),
        count_(ceil_div(bytes, step_)) {}

  TANDEM_DEVICE Size count() const { return count_; }
  /// Returns chunk `i` of a range of at most that length; it may be empty.
  TANDEM_DEVICE Range of(Range range, Size i) const {
    const Size begin = min(range.begin + i * step_, range.end);
    return {begin, min(begin + step_, range.end)};
  }

 private:
  Size step_;
  Size count_;
};

/// The signals of one flow of chunks between two PEs: chunk i of call e sets word i % kWindow to (e, i + 1).
///
/// Two put_signals to one PE have no order between them. Chunks in flight together therefore have different words, and
/// a fence separates one window of them from the next (`before`). A word of at least (e, i + 1) means that chunk i has
/// arrived.
class ChunkSignals {
 public:
  template <class Block>
  TANDEM_DEVICE ChunkSignals(const Block& block, Signals words, int pe, Epoch epoch)
      : words_(words + (Size{block.index()} * block.num_pes() + pe) * kWindow), epoch_(epoch) {}

  TANDEM_DEVICE Signals word(Size chunk) const { return words_ + chunk % kWindow; }
  TANDEM_DEVICE Epoch value(Size chunk) const { return chunk_epoch(epoch_, chunk); }

  /// Must be called before chunk `chunk` is sent to any PE.
  template <class Block>
  TANDEM_DEVICE static void before(Block& block, Size chunk) {
    if (chunk > 0 && chunk % kWindow == 0) block.fence();
  }
  template <class Block>
  TANDEM_DEVICE void wait(Block& block, Size chunk) const {
    block.wait(word(chunk), 1, value(chunk));
  }
  /// Waits for all of `chunks` chunks through the last one of each word.
  template <class Block>
  TANDEM_DEVICE void wait_to_end(Block& block, Size chunks) const {
    for (Size chunk = max(0, chunks - kWindow); chunk < chunks; ++chunk) wait(block, chunk);
  }

 private:
  Signals words_;
  Epoch epoch_;
};

}  // namespace tandem::kernels
