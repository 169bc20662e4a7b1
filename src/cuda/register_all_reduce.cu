// The GPU forms of all_reduce's algorithms for one node.

#include "cuda/register_types.cuh"
#include "kernels/all_reduce_one_shot.h"
#include "kernels/all_reduce_one_shot_ll.h"
#include "kernels/all_reduce_two_shot.h"
#include "kernels/all_reduce_two_shot_ll.h"

namespace tandem::cuda {

void register_all_reduce() {
  register_types<kernels::AllReduceOneShot>();
  register_types<kernels::AllReduceOneShotLL>();
  register_types<kernels::AllReduceOneShotLL128>();
  register_types<kernels::AllReduceTwoShot>();
  register_types<kernels::AllReduceTwoShotLL>();
  register_types<kernels::AllReduceTwoShotLL128>();
}

}  // namespace tandem::cuda
