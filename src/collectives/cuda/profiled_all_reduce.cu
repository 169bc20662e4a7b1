// The recording variants of all_reduce's algorithms.

#include "collectives/all_reduce/multi_ring.h"
#include "collectives/all_reduce/one_shot.h"
#include "collectives/all_reduce/one_shot_ll.h"
#include "collectives/all_reduce/recursive_doubling.h"
#include "collectives/all_reduce/ring.h"
#include "collectives/all_reduce/ring_simple.h"
#include "collectives/all_reduce/tree.h"
#include "collectives/all_reduce/two_shot.h"
#include "collectives/all_reduce/two_shot_ll.h"
#include "collectives/cuda/profiled_types.cuh"
#include "collectives/cuda/register.h"

namespace tandem::cuda {

void register_profiled_all_reduce() {
  register_profiled_types<kernels::AllReduceOneShot>();
  register_profiled_types<kernels::AllReduceOneShotLL>();
  register_profiled_types<kernels::AllReduceOneShotLL128>();
  register_profiled_types<kernels::AllReduceTwoShot>();
  register_profiled_types<kernels::AllReduceTwoShotLL>();
  register_profiled_types<kernels::AllReduceTwoShotLL128>();
  register_profiled_types<kernels::AllReduceMultiRing>();
  register_profiled_types<kernels::AllReduceRecursiveDoubling>();
  register_profiled_types<kernels::AllReduceRing>();
  register_profiled_types<kernels::AllReduceRingSimple>();
  register_profiled_types<kernels::AllReduceTree>();
}

}  // namespace tandem::cuda
