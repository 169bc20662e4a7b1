// The GPU forms of all_reduce's algorithms in many steps: rings and trees.

#include "cuda/register_types.cuh"
#include "kernels/all_reduce_multi_ring.h"
#include "kernels/all_reduce_recursive_doubling.h"
#include "kernels/all_reduce_ring.h"
#include "kernels/all_reduce_ring_simple.h"
#include "kernels/all_reduce_tree.h"

namespace tandem::cuda {

void register_all_reduce_steps() {
  register_types<kernels::AllReduceMultiRing>();
  register_types<kernels::AllReduceRecursiveDoubling>();
  register_types<kernels::AllReduceRing>();
  register_types<kernels::AllReduceRingSimple>();
  register_types<kernels::AllReduceTree>();
}

}  // namespace tandem::cuda
