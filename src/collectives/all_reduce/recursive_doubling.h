#pragma once
/// Recursive doubling all-reduce (Thakur, Rabenseifner and Gropp 2005): in step k every PE swaps its whole partial sum
/// with the one at distance 2^k; log2(n) steps.
///
/// It works for any n. Let p be the greatest power of two within n. In each pair (2i, 2i+1), i < n - p, the odd PE
/// first gives its values to the even one. At the end it gets the result. The remaining PEs are renumbered without
/// gaps. Fixed order: a balanced binary tree over PEs in their order, lower PEs first, every partial sum rounded to T.
/// It needs put and signal, so it works within a node and between nodes. In-place allowed.

#include "base/gpu_kernel.h"
#include "collectives/steps/quiet_at_end.h"
#include "collectives/steps/reduce_input.h"
#include "tandem/block.h"

namespace tandem::kernels {

template <class T>
struct AllReduceRecursiveDoubling {
  struct Args {
    Symm<const T> in;
    Symm<T> out;        // holds this PE's partial sum meanwhile
    Symm<T> partial;    // staging, [2][step][capacity]: the partner's partial sum, by epoch parity; step 0 is the odd
                        // PE's values
    Size capacity = 0;  // elements of each
    Signals arrived;    // [block][step]: epoch of the data in `partial`; the last step is the result, in `out`
    int steps = 0;      // 2 + log2(p)
    Epochs epochs;      // [block]
    ReduceOp op = ReduceOp::kSum;
    Size count = 0;
    Accumulator<T> scale = 1;
  };

  /// log2 of the greatest power of two within n.
  TANDEM_DEVICE static constexpr int doublings(int n) {
    int k = 0;
    while ((2 << k) <= n) ++k;
    return k;
  }

  template <class Setup>
  static Args prepare(Setup& setup) {
    Args a;
    a.steps = 2 + doublings(setup.pes());
    a.capacity = round_up(setup.max_count(), 16);
    a.partial = setup.template symmetric<T>(2 * a.steps * a.capacity, "partial");
    a.arrived = setup.signals(Size{setup.blocks()} * a.steps, "arrived");
    a.epochs = setup.epochs();
    return a;
  }

  // Two slots suffice: a PE that finished call e+1 has a signal of e+1 from its peer of each step, so these had
  // finished e.
  template <class Block>
  TANDEM_DEVICE static void run(Block& block, const Args& a) {
    const int n = block.num_pes();
    const int me = block.pe();
    const int participants = 1 << (a.steps - 2);
    const int pairs = n - participants;
    const Range part = split(a.count, block.count(), 16)[block.index()];
    const Signals arrived = a.arrived + Size{block.index()} * a.steps;
    const Epoch epoch = block.next_epoch(a.epochs);
    const Symm<T> partial = a.partial + static_cast<Size>(epoch % 2) * a.steps * a.capacity;
    const auto send = [&](Symm<T> to, int step, int pe) {
      block.put_signal(to + part.begin, a.out.local() + part.begin, part.size(), arrived + step, epoch, pe);
    };

    copy_input<T>(block, a.out.local(), a.in.local(), part, a.op, a.scale);
    const bool in_pair = me < 2 * pairs;
    if (in_pair && me % 2 == 1) {
      send(partial, 0, me - 1);
      block.wait(arrived + (a.steps - 1), 1, epoch);
      return;
    }
    if (in_pair) add(block, a, partial, arrived, 0, part, epoch, false);
    const int rank = in_pair ? me / 2 : me - pairs;
    for (int k = 0; k + 2 < a.steps; ++k) {
      const int peer = rank ^ (1 << k);
      send(partial + (k + 1) * a.capacity, k + 1, peer < pairs ? 2 * peer : peer + pairs);
      add(block, a, partial, arrived, k + 1, part, epoch, peer < rank);
    }
    if (a.op == ReduceOp::kAvg)
      for (const Range tile : block.template tiles<T>(part))
        block.store(a.out.local(), tile, finished(block.template load<Accumulator<T>>(a.out.local(), tile), a.op, n));
    if (in_pair) send(a.out, a.steps - 1, me + 1);
    quiet_at_end(block);
  }

 private:
  /// Waits for the data of step `step` and reduces it into this PE's partial sum, as the left or the right operand.
  template <class Block>
  TANDEM_DEVICE static void add(Block& block, const Args& a, Symm<T> partial, Signals arrived, int step, Range part,
                                Epoch epoch, bool before) {
    using A = Accumulator<T>;
    block.wait(arrived + step, 1, epoch);
    for (const Range tile : block.template tiles<T>(part)) {
      const auto own = block.template load<A>(a.out.local(), tile);
      const auto theirs = block.template load<A>(partial.local() + step * a.capacity, tile);
      block.store(a.out.local(), tile, before ? block.combine(a.op, theirs, own) : block.combine(a.op, own, theirs));
    }
  }
};

TANDEM_GPU_KERNELS(AllReduceRecursiveDoubling, 512);
TANDEM_GPU_BETWEEN_NODES(AllReduceRecursiveDoubling);

}  // namespace tandem::kernels
