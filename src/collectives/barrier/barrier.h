#pragma once
/// A barrier of all PEs as a kernel.

#include "base/gpu_kernel.h"
#include "tandem/barrier.h"

namespace tandem::kernels {

struct BarrierAll {
  using Args = TeamBarrier;
  template <class Block>
  TANDEM_DEVICE static void run(Block& block, const Args& barrier) {
    barrier_all(block, barrier);
  }
};

TANDEM_GPU_KERNEL(BarrierAll, 32);
TANDEM_GPU_BETWEEN_NODES(BarrierAll);

}  // namespace tandem::kernels
