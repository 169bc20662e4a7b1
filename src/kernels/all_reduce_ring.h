#pragma once
/// Ring all-reduce (Patarasuk and Yuan 2009): a reduce phase, then a broadcast phase, over n chunks.
///
/// Chunk c goes round from PE c+1 to PE c, which then holds its sum. Fixed order: in[c+1] + in[c+2] + ... + in[c], each partial
/// sum rounded to T as it travels. Each link carries 2 (n-1)/n of the data, in 2 (n-1) steps.
/// Needs put and signal to the next PE: works within a node and between nodes. In-place allowed.

#include "tandem/block.h"
#include "tandem/numeric.h"

namespace tandem::kernels {

template <class T>
struct AllReduceRing {
  struct Args {
    Symm<const T> in;
    Symm<T> out;
    Symm<T> partial;  // staging, count elements: sums under way, each chunk in its place
    Signals ready;    // [block]: the next PE has begun this call, so its buffers may be written
    Signals arrived;  // [block]: chunks delivered by the previous PE, counted over all calls
    Epochs epochs;    // [block]
    ReduceOp op;
    Size count;
  };

  template <class Block>
  TANDEM_DEVICE static void run(Block& block, const Args& a) {
    using A = Accumulator<T>;
    const int n = block.num_pes();
    const int me = block.pe();
    const int next = (me + 1) % n;
    const Split chunks = split(split(a.count, block.count(), 16)[block.index()], n, 16);
    const auto chunk = [&](int i) { return chunks[(i + 2 * n) % n]; };
    const Signals arrived = a.arrived + block.index();
    const Epoch epoch = block.next_epoch(a.epochs);
    Epoch received = (epoch - 1) * 2 * (n - 1);  // what `arrived` counted before this call
    Epoch sent = received;

    block.notify(a.ready + block.index(), epoch, (me + n - 1) % n);
    block.wait(a.ready + block.index(), 1, epoch);

    // Reduce: chunk me-1 leaves first; what arrives gets this PE's values added and goes on, until chunk me is complete.
    for (int step = 1; step <= n; ++step) {
      const Range range = chunk(me - step);
      const bool is_first = step == 1;
      const bool is_last = step == n;
      T* const direct = is_last ? nullptr : block.remote(a.partial, next);
      T* const to = is_last ? a.out.local() : direct != nullptr ? direct : a.partial.local();
      if (!is_first) block.wait(arrived, 1, ++received);
      for (const Range tile : block.template tiles<T>(range)) {
        const auto own = block.template load<A>(a.in.local(), tile);
        if (is_first)
          block.store(to, tile, own);
        else
          block.store(to, tile, block.combine(a.op, block.template load<A>(a.partial.local(), tile), own));
      }
      if (is_last) break;
      if (direct != nullptr)
        block.notify(arrived, ++sent, next);
      else
        block.put_signal_nbi(a.partial + range.begin, a.partial.local() + range.begin, range.size(), arrived, ++sent, next);
    }

    // Broadcast: the complete chunk me leaves first; what arrives goes on.
    for (int step = 0; step < n - 1; ++step) {
      const Range range = chunk(me - step);
      if (step > 0) block.wait(arrived, 1, ++received);
      block.put_signal_nbi(a.out + range.begin, a.out.local() + range.begin, range.size(), arrived, ++sent, next);
    }
    if (n > 1) block.wait(arrived, 1, ++received);
    block.quiet();
  }
};

}  // namespace tandem::kernels
