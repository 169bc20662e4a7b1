// The recorded forms of reduce_scatter and reduce.

#include "cuda/recorded_types.cuh"
#include "kernels/reduce_direct.h"
#include "kernels/reduce_scatter_ll.h"
#include "kernels/reduce_scatter_pull.h"
#include "kernels/reduce_scatter_push.h"
#include "kernels/reduce_scatter_ring.h"
#include "kernels/reduce_scatter_two_level.h"
#include "kernels/reduce_tree.h"

namespace tandem::cuda {

void register_recorded_reduce() {
  register_recorded_types<kernels::ReduceDirect>();
  register_recorded_types<kernels::ReduceTree>();
  register_recorded_types<kernels::ReduceScatterLL>();
  register_recorded_types<kernels::ReduceScatterLL128>();
  register_recorded_types<kernels::ReduceScatterPull>();
  register_recorded_types<kernels::ReduceScatterPush>();
  register_recorded_types<kernels::ReduceScatterRing>();
  register_recorded_types<kernels::ReduceScatterTwoLevel>();
}

}  // namespace tandem::cuda
