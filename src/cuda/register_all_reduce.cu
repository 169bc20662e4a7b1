// The GPU forms of all_reduce.

#include "kernels/all_reduce_one_shot.h"
#include "kernels/all_reduce_one_shot_ll.h"
#include "kernels/all_reduce_recursive_doubling.h"
#include "kernels/all_reduce_ring.h"
#include "kernels/all_reduce_ring_simple.h"
#include "kernels/all_reduce_tree.h"
#include "kernels/all_reduce_two_shot.h"
#include "kernels/all_reduce_two_shot_ll.h"
#include "cuda/register_types.cuh"

namespace tandem::cuda {

void register_all_reduce() {
  register_types<kernels::AllReduceOneShot>();
  register_types<kernels::AllReduceOneShotLL>();
  register_types<kernels::AllReduceRecursiveDoubling>();
  register_types<kernels::AllReduceRing>();
  register_types<kernels::AllReduceRingSimple>();
  register_types<kernels::AllReduceTree>();
  register_types<kernels::AllReduceTwoShot>();
  register_types<kernels::AllReduceTwoShotLL>();
}

}  // namespace tandem::cuda
