#pragma once
/// Notifies the collector of a shard's rows that this PE's partial sums of them are complete. It follows a whole,
/// plain GEMM.

#include "base/gpu_kernel.h"
#include "tandem/advanced/gemm.h"
#include "tandem/block.h"

namespace tandem::ops {

struct NotifyCollector {
  struct Args {
    Signals words;  // [block][part] at the collector
    const Epoch* epoch;
    int splits;
    int collector;
    int block_at_collector;
  };
  template <class Block>
  TANDEM_DEVICE static void run(Block& block, const Args& a) {
    const Epoch epoch = block.load_scalar(a.epoch);
    for (int part = 0; part < a.splits; ++part)
      block.notify(a.words + (a.block_at_collector * a.splits + part), epoch, a.collector);
  }
};

TANDEM_GPU_STEP(NotifyCollector);

}  // namespace tandem::ops
