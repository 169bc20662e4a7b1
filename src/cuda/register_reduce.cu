// The GPU forms of reduce_scatter and reduce.

#include "cuda/register_types.cuh"
#include "kernels/reduce_direct.h"
#include "kernels/reduce_scatter_ll.h"
#include "kernels/reduce_scatter_pull.h"
#include "kernels/reduce_scatter_push.h"
#include "kernels/reduce_scatter_ring.h"
#include "kernels/reduce_scatter_two_level.h"
#include "kernels/reduce_tree.h"

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
