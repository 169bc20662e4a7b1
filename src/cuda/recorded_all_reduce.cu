// The recorded forms of all_reduce's algorithms.

#include "cuda/recorded_types.cuh"
#include "kernels/all_reduce_multi_ring.h"
#include "kernels/all_reduce_one_shot.h"
#include "kernels/all_reduce_one_shot_ll.h"
#include "kernels/all_reduce_recursive_doubling.h"
#include "kernels/all_reduce_ring.h"
#include "kernels/all_reduce_ring_simple.h"
#include "kernels/all_reduce_tree.h"
#include "kernels/all_reduce_two_shot.h"
#include "kernels/all_reduce_two_shot_ll.h"

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
