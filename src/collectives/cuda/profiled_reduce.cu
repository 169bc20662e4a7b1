// The recording variants of reduce_scatter and reduce.

#include "collectives/cuda/profiled_types.cuh"
#include "collectives/cuda/register.h"
#include "collectives/reduce/direct.h"
#include "collectives/reduce/tree.h"
#include "collectives/reduce_scatter/ll.h"
#include "collectives/reduce_scatter/pull.h"
#include "collectives/reduce_scatter/push.h"
#include "collectives/reduce_scatter/ring.h"
#include "collectives/reduce_scatter/two_level.h"

namespace tandem::cuda {

void register_profiled_reduce() {
  register_profiled_types<kernels::ReduceDirect>();
  register_profiled_types<kernels::ReduceTree>();
  register_profiled_types<kernels::ReduceScatterLL>();
  register_profiled_types<kernels::ReduceScatterLL128>();
  register_profiled_types<kernels::ReduceScatterPull>();
  register_profiled_types<kernels::ReduceScatterPush>();
  register_profiled_types<kernels::ReduceScatterRing>();
  register_profiled_types<kernels::ReduceScatterTwoLevel>();
}

}  // namespace tandem::cuda
