#pragma once
/// Second half of the one-shot GEMM + AllReduce. Every PE holds all partial sums, which the GEMMs stored here tile by
/// tile, and adds them.
///
/// Fixed order, in f32: PEs 0, 1, ..., rounded once, so all PEs get the same bits.

#include "base/gpu_kernel.h"
#include "gemm/contract/activation.h"
#include "tandem/block.h"

namespace tandem::ops {

template <class T>
struct SumOfAll {
  struct Args {
    Symm<T> staging;        // [PE] x count
    T* out;                 // count
    Size count;             // elements of the result
    Size tiles;             // tiles of the result: the growth of a PE's word in this call
    Signals arrived;        // [PE]: its tiles that are here, counted over all calls
    Signals released;       // one word: PEs that have released their staging, counted over all calls
    Epoch* expected;        // [block]: tiles of a PE up to the last call
    Epoch* through;         // one word: blocks that have read everything, counted over all calls
    Epoch* finished;        // one word: calls
    Activation activation;  // of the sum
  };

  template <class Block>
  TANDEM_DEVICE static void run(Block& block, const Args& a) {
    using A = Accumulator<T>;
    const auto tiles = static_cast<Epoch>(a.tiles);
    const Epoch expected = block.fetch_add(a.expected + block.index(), tiles, Scope::kGpu, Order::kRelaxed) + tiles;
    block.wait(a.arrived, block.num_pes(), expected);
    for (const Range tile : block.template tiles<T>(split(a.count, block.count(), 16)[block.index()])) {
      auto sum = block.template load<A>(a.staging.local(), tile);
      for (int pe = 1; pe < block.num_pes(); ++pe)
        sum = block.combine(ReduceOp::kSum, sum, block.template load<A>(a.staging.local() + pe * a.count, tile));
      block.store(a.out, tile, activated(a.activation, std::move(sum)));
    }
    release(block, a);
  }

 private:
  /// The grid's last block signals that the peers' next GEMMs may store here.
  template <class Block>
  TANDEM_DEVICE static void release(Block& block, const Args& a) {
    const auto blocks = static_cast<Epoch>(block.count());
    const Epoch before = block.fetch_add(a.through, Epoch{1}, Scope::kGpu, Order::kAcqRel);
    if (before % blocks != blocks - 1) return;
    block.fetch_add(a.finished, Epoch{1}, Scope::kGpu, Order::kRelaxed);
    for (const int pe : block.pes_from_self()) block.notify(a.released, 1, pe, SignalOp::kAdd);
  }
};

TANDEM_GPU_KERNEL(SumOfAll<float>, 512);
TANDEM_GPU_KERNEL(SumOfAll<f16>, 512);
TANDEM_GPU_KERNEL(SumOfAll<bf16>, 512);

}  // namespace tandem::ops
