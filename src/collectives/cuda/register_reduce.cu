// The GPU kernels of reduce_scatter and reduce.

#include "collectives/cuda/register.h"
#include "collectives/cuda/register_types.cuh"
#include "collectives/reduce/direct.h"
#include "collectives/reduce/tree.h"
#include "collectives/reduce_scatter/ll.h"
#include "collectives/reduce_scatter/pull.h"
#include "collectives/reduce_scatter/push.h"
#include "collectives/reduce_scatter/ring.h"
#include "collectives/reduce_scatter/two_level.h"

namespace tandem::cuda {

void register_reduce() {
  register_types<kernels::ReduceDirect>();
  register_types<kernels::ReduceTree>();
  register_types<kernels::ReduceScatterLL>();
  register_types<kernels::ReduceScatterLL128>();
  register_types<kernels::ReduceScatterPull>();
  register_types<kernels::ReduceScatterPush>();
  register_types<kernels::ReduceScatterRing>();
  register_types<kernels::ReduceScatterTwoLevel>();
}

}  // namespace tandem::cuda
