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
#include "collectives/cuda/recorded_types.cuh"
#include "collectives/cuda/register.h"

namespace tandem::cuda {

void register_recorded_all_reduce() {
  register_recorded_types<kernels::AllReduceOneShot>();
  register_recorded_types<kernels::AllReduceOneShotLL>();
  register_recorded_types<kernels::AllReduceOneShotLL128>();
  register_recorded_types<kernels::AllReduceTwoShot>();
  register_recorded_types<kernels::AllReduceTwoShotLL>();
  register_recorded_types<kernels::AllReduceTwoShotLL128>();
  register_recorded_types<kernels::AllReduceMultiRing>();
  register_recorded_types<kernels::AllReduceRecursiveDoubling>();
  register_recorded_types<kernels::AllReduceRing>();
  register_recorded_types<kernels::AllReduceRingSimple>();
  register_recorded_types<kernels::AllReduceTree>();
}

}  // namespace tandem::cuda
