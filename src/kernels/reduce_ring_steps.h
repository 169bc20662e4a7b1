#pragma once
/// The two phases of ring algorithms, for every kernel that sends chunks round a ring.

#include "kernels/put_counted.h"
#include "kernels/reduce_input.h"
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

template <class T>
struct RingReduce {
  Symm<const T> in;
  Symm<T> partial;  // sums under way, each chunk where it is in `in`
  T* result;        // where the chunk of this PE's position goes ...
  Size shift;       // ... with indices that are so much smaller than in `in`
  Signals arrived;  // this block's word: deliveries by the previous PE, counted over all calls
  ReduceOp op;
  Accumulator<T> scale;
};

/// Chunk c goes round from position c+1 to position c, each PE adding its own values to what arrives:
/// in[c+1] + in[c+2] + ... + in[c]. `chunk(i)`, -n <= i < n, is the range of chunk i modulo n.
/// `counted`: the deliveries so far, sent as well as received; size - 1 more afterwards.
/// The next PE must have begun this call before this is called. Ends before this PE's puts are complete.
template <class T, class Block, class Chunk>
TANDEM_DEVICE void ring_reduce(Block& block, const RingPlace& ring, const RingReduce<T>& a, const Chunk& chunk,
                               Epoch& counted) {
  using A = Accumulator<T>;
  const T* const in = a.in.local();
  T* const direct = block.remote(a.partial, ring.next);
  T* const to = direct != nullptr ? direct : a.partial.local();
  for (int step = 1; step <= ring.size; ++step) {
    const Range range = chunk(ring.position - step);
    const Epoch received = counted + static_cast<Epoch>(step - 1);
    if (step > 1) block.wait(a.arrived, 1, received);
    for (const Range tile : block.template tiles<T>(range)) {
      const auto sum_of = [&] {
        const auto own = load_input<T>(block, in, tile, a.op, a.scale);
        if (step == 1) return own.template convert<A>();
        const auto partial = block.template load<T>(a.partial.local(), tile);  // both are under way
        return block.combine(a.op, partial.template convert<A>(), own.template convert<A>());
      };
      auto sum = sum_of();
      if (step < ring.size)
        block.store(to, tile, sum);
      else
        block.store(a.result, {tile.begin - a.shift, tile.end - a.shift}, finished(std::move(sum), a.op, ring.size));
    }
    if (step == ring.size) break;
    if (direct != nullptr)
      block.notify(a.arrived, received + 1, ring.next);
    else
      put_counted<T>(block, a.partial, a.partial.local(), range, a.arrived, received + 1, ring.next);
  }
  counted += static_cast<Epoch>(ring.size - 1);
}

/// Chunk c goes round from position c to position c-1. `counted` as above.
template <class T, class Block, class Chunk>
TANDEM_DEVICE void ring_broadcast(Block& block, const RingPlace& ring, Symm<T> out, Signals arrived, const Chunk& chunk,
                                  Epoch& counted) {
  for (int step = 0; step < ring.size - 1; ++step) {
    const Range range = chunk(ring.position - step);
    if (step > 0) block.wait(arrived, 1, ++counted);
    put_counted<T>(block, out, out.local(), range, arrived, counted + 1, ring.next);
  }
  if (ring.size > 1) block.wait(arrived, 1, ++counted);
}

/// Ring all-reduce of the elements `part`, of which every position completes one chunk.
/// `ready`: this block's word; the next PE sets it when it has begun this call, so that its buffers may be written.
template <class T, class Block>
TANDEM_DEVICE void ring_all_reduce(Block& block, const RingPlace& ring, const RingReduce<T>& a, Symm<T> out,
                                   Signals ready, Range part, Epoch epoch) {
  const Split chunks = split(part, ring.size, 16);
  const auto chunk = [&](int i) { return chunks[(i + ring.size) % ring.size]; };
  Epoch counted = (epoch - 1) * 2 * static_cast<Epoch>(ring.size - 1);
  block.notify(ready, epoch, ring.previous);
  block.wait(ready, 1, epoch);
  ring_reduce<T>(block, ring, a, chunk, counted);
  ring_broadcast<T>(block, ring, out, a.arrived, chunk, counted);
  block.quiet();
}

}  // namespace tandem::kernels
