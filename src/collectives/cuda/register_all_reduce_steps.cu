// The GPU kernels of all_reduce's algorithms with many steps: rings and trees.

#include "collectives/all_reduce/multi_ring.h"
#include "collectives/all_reduce/recursive_doubling.h"
#include "collectives/all_reduce/ring.h"
#include "collectives/all_reduce/ring_simple.h"
#include "collectives/all_reduce/tree.h"
#include "collectives/cuda/register.h"
#include "collectives/cuda/register_types.cuh"

namespace tandem::cuda {

void register_all_reduce_steps() {
  register_types<kernels::AllReduceMultiRing>();
  register_types<kernels::AllReduceRecursiveDoubling>();
  register_types<kernels::AllReduceRing>();
  register_types<kernels::AllReduceRingSimple>();
  register_types<kernels::AllReduceTree>();
}

}  // namespace tandem::cuda
