#pragma once
/// Simple ring all-reduce: the whole buffer travels around once, in n-1 hops, for small messages.
///
/// Every PE forwards what it received unchanged and keeps a copy. At the end it holds the inputs of all PEs and sums
/// them. It takes half as many steps as the ring with chunks. But each link carries n-1 times the data, and staging
/// holds 2 n buffers. Fixed order: in[0] + in[1] + ... + in[n-1] on every PE, rounded to T once. It needs put and
/// signal to the next PE, so it works within a node and between nodes. In-place allowed.

#include "base/gpu_kernel.h"
#include "collectives/steps/put_counted.h"
#include "collectives/steps/quiet_at_end.h"
#include "collectives/steps/reduce_input.h"
#include "tandem/block.h"

namespace tandem::kernels {

template <class T>
struct AllReduceRingSimple {
  struct Args {
    Symm<const T> in;
    Symm<T> out;
    Symm<T> inputs;     // staging, [2][PE][capacity]: every PE's input, by epoch parity
    Size capacity = 0;  // elements of each
    Signals arrived;    // [block]: inputs delivered by the previous PE, counted over all calls
    Epochs epochs;      // [block]
    ReduceOp op = ReduceOp::kSum;
    Size count = 0;
    Accumulator<T> scale = 1;
  };

  template <class Setup>
  static Args prepare(Setup& setup) {
    Args a;
    a.capacity = round_up(setup.max_count(), 16);
    a.inputs = setup.template symmetric<T>(2 * setup.pes() * a.capacity, "inputs");
    a.arrived = setup.signals(setup.blocks(), "arrived");
    a.epochs = setup.epochs();
    return a;
  }

  // Two slots suffice: a PE that finished call e+1 has every PE's input of e+1, so every PE had finished e.
  template <class Block>
  TANDEM_DEVICE static void run(Block& block, const Args& a) {
    const int n = block.num_pes();
    const int me = block.pe();
    const Range part = split(a.count, block.count(), 16)[block.index()];
    const Signals arrived = a.arrived + block.index();
    const Epoch epoch = block.next_epoch(a.epochs);
    const Symm<T> inputs = a.inputs + static_cast<Size>(epoch % 2) * n * a.capacity;
    Epoch counted = (epoch - 1) * static_cast<Epoch>(n - 1);

    copy_input<T>(block, inputs.local() + me * a.capacity, a.in.local(), part, a.op, a.scale);
    for (int step = 0; step < n - 1; ++step) {
      const Symm<T> passed = inputs + (me - step + n) % n * a.capacity;
      if (step > 0) block.wait(arrived, 1, ++counted);
      put_counted<T>(block, passed, passed.local(), part, arrived, counted + 1, (me + 1) % n);
    }
    if (n > 1) block.wait(arrived, 1, ++counted);

    for (const Range tile : block.template tiles<T>(part)) {
      const auto input = [&](int pe) { return block.template load<T>(inputs.local() + pe * a.capacity, tile); };
      block.store(a.out.local(), tile, reduce_in_pe_order<T>(block, a.op, n, input));
    }
    quiet_at_end(block);
  }
};

TANDEM_GPU_KERNELS(AllReduceRingSimple, 512);
TANDEM_GPU_BETWEEN_NODES(AllReduceRingSimple);

}  // namespace tandem::kernels
