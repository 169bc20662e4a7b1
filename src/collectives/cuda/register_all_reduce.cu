// The GPU kernels of all_reduce's algorithms for one node.

#include "collectives/all_reduce/one_shot.h"
#include "collectives/all_reduce/one_shot_ll.h"
#include "collectives/all_reduce/two_shot.h"
#include "collectives/all_reduce/two_shot_ll.h"
#include "collectives/cuda/register.h"
#include "collectives/cuda/register_types.cuh"

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
