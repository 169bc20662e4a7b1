#pragma once
/// The two phases of ring algorithms, for every kernel that sends chunks around a ring.

#include "collectives/steps/put_counted.h"
#include "collectives/steps/quiet_at_end.h"
#include "collectives/steps/reduce_input.h"
#include "tandem/signal.h"

namespace tandem::kernels {

/// A PE's place in a ring.
struct RingPlace {
  int position;
  int size;
  int next;      ///< PE that this one sends to
  int previous;  ///< PE that sends to this one
};

/// The ring of all PEs of the team, in their order.
template <class Block>
TANDEM_DEVICE RingPlace ring_of_team(const Block& block) {
  const int n = block.num_pes();
  return {block.pe(), n, (block.pe() + 1) % n, (block.pe() + n - 1) % n};
}

inline constexpr Size kMostRingChunks = 4;

/// Returns the parts of a chunk with signals of their own, so that they are summed or forwarded while the next ones are
/// under way. The number is the same on all PEs, for chunks of at most `bytes` bytes. It is 1 except for two PEs, which
/// have no other step to overlap with. In longer rings the waits for the parts' signals cost more than they gain.
template <class Block>
TANDEM_DEVICE int ring_chunks(const Block& block, int ring_size, Size bytes) {
  constexpr Size kLeastBytes = Size{16} << 10;
  if (ring_size > 2 || !block.team().one_node()) return 1;
  return static_cast<int>(min(max(bytes / kLeastBytes, 1), kMostRingChunks));
}

/// Returns the value of a ring's delivery word before the first delivery of call `epoch`. It is larger than in any
/// earlier call, each of which delivered fewer than kMostRingChunks in each of 2 (n - 1) steps. A call of a larger ring
/// takes longer in proportion to its deliveries. The 2^60 calls of two PEs are thus as far away as the end for others:
/// beyond 30,000 years at one call each microsecond.
TANDEM_DEVICE constexpr Epoch ring_count(Epoch epoch, int ring_size) {
  return epoch * (2 * static_cast<Epoch>(kMostRingChunks) * static_cast<Epoch>(ring_size));
}

template <class T>
struct RingReduce {
  Symm<const T> in;
  Symm<T> partial;  // partial sums, each chunk at its place in `in`
  T* result;        // destination of the chunk of this PE's position
  Size shift;       // its indices are smaller by this than in `in`
  Signals arrived;  // this block's word: parts delivered by the previous PE, from ring_count of the call on
  ReduceOp op;
  Accumulator<T> scale;
};

/// Returns this PE's values of a tile, and in all steps but the first the sum with the values that arrived.
template <class T, class Block>
TANDEM_DEVICE auto ring_sum(Block& block, const RingReduce<T>& a, Range tile, bool has_partial) {
  using A = Accumulator<T>;
  const auto own_input = [&] { return load_input<T>(block, a.in.local(), tile, a.op, a.scale); };
  if (!has_partial) return own_input().template convert<A>();
  // Both loads are under way. The other order would request the multiplier after the load.
  const auto partial = block.template load<T>(a.partial.local(), tile);
  const auto own = own_input();
  return block.combine(a.op, partial.template convert<A>(), own.template convert<A>());
}

/// Chunk c travels around the ring from position c+1 to position c, and each PE adds its own values: in[c+1] + in[c+2]
/// + ... + in[c]. `chunk(i)`, -n <= i < n, is the range of chunk i modulo n, of `pieces` parts. `counted` is the number
/// of parts so far, sent as well as received; it grows by (size - 1) * pieces. `also`, unless null, is a second
/// destination of the chunk of this PE's position, with indices as in `in`. The next PE is notified of its parts, too.
/// The next PE must have started this call before. It ends before this PE's puts are complete.
template <class T, class Block, class Chunk>
TANDEM_DEVICE void ring_reduce(Block& block, const RingPlace& ring, const RingReduce<T>& a, const Chunk& chunk,
                               int pieces, Epoch& counted, T* also = nullptr) {
  T* const direct = block.remote(a.partial, ring.next);
  T* const to = direct != nullptr ? direct : a.partial.local();
  for (int step = 1; step <= ring.size; ++step) {
    const bool is_last = step == ring.size;
    T* const target = is_last ? a.result : to;
    const Size shift = is_last ? a.shift : 0;
    const ReduceOp finish_as = is_last ? a.op : ReduceOp::kSum;
    const Split parts = split(chunk(ring.position - step), pieces, 16);
    for (int i = 0; i < pieces; ++i) {
      const Range range = parts[i];
      if (step > 1) block.wait(a.arrived, 1, ++counted);
      const Epoch sent = counted + static_cast<Epoch>(step > 1 ? pieces : i + 1);
      for (const Range tile : block.template tiles<T>(range)) {
        const auto values = finished(ring_sum<T>(block, a, tile, step > 1), finish_as, ring.size);
        block.store(target, {tile.begin - shift, tile.end - shift}, values);
        if (is_last && also != nullptr) block.store(also, tile, values);
      }
      if (is_last ? also != nullptr : direct != nullptr)
        block.notify(a.arrived, sent, ring.next);
      else if (!is_last)
        put_counted<T>(block, a.partial, a.partial.local(), range, a.arrived, sent, ring.next);
    }
  }
}

/// Chunk c travels around the ring from position c to position c-1. Arguments as above. `begun`: the next PE has this
/// PE's chunk.
template <class T, class Block, class Chunk>
TANDEM_DEVICE void ring_broadcast(Block& block, const RingPlace& ring, Symm<T> out, Signals arrived, const Chunk& chunk,
                                  int pieces, Epoch& counted, bool begun) {
  for (int step = begun ? 1 : 0; step < ring.size - 1; ++step) {
    const Split parts = split(chunk(ring.position - step), pieces, 16);
    for (int i = 0; i < pieces; ++i) {
      if (step > 0) block.wait(arrived, 1, ++counted);
      const Epoch sent = counted + static_cast<Epoch>(step > 0 ? pieces : i + 1);
      put_counted<T>(block, out, out.local(), parts[i], arrived, sent, ring.next);
    }
  }
  if (ring.size > 1) block.wait(arrived, 1, counted += static_cast<Epoch>(pieces));
}

/// Ring all-reduce of the elements `part`, of which every position completes one chunk.
/// `ready` is this block's word. The next PE sets it when it has started this call, so that its buffers may be written.
template <class T, class Block>
TANDEM_DEVICE void ring_all_reduce(Block& block, const RingPlace& ring, const RingReduce<T>& a, Symm<T> out,
                                   Signals ready, Range part, Epoch epoch) {
  const Split chunks = split(part, ring.size, 16);
  const auto chunk = [&](int i) { return chunks[(i + ring.size) % ring.size]; };
  const int pieces = ring_chunks(block, ring.size, chunks.step() * Size{sizeof(T)});
  Epoch counted = ring_count(epoch, ring.size);
  block.notify(ready, epoch, ring.previous);
  block.wait(ready, 1, epoch);
  // Sums leave for the next PE as they are made, if it is reachable, so that the link is never idle.
  T* const onward = ring.size > 1 ? block.remote(out, ring.next) : nullptr;
  ring_reduce<T>(block, ring, a, chunk, pieces, counted, onward);
  ring_broadcast<T>(block, ring, out, a.arrived, chunk, pieces, counted, onward != nullptr);
  quiet_at_end(block);
}

}  // namespace tandem::kernels
