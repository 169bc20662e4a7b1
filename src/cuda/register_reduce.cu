// The GPU forms of reduce_scatter and reduce.

#include "kernels/reduce_direct.h"
#include "kernels/reduce_scatter_pull.h"
#include "kernels/reduce_scatter_push.h"
#include "kernels/reduce_scatter_ring.h"
#include "kernels/reduce_tree.h"
#include "cuda/register_types.cuh"

namespace tandem::cuda {

void register_reduce() {
  register_types<kernels::ReduceDirect>();
  register_types<kernels::ReduceTree>();
  register_types<kernels::ReduceScatterPull>();
  register_types<kernels::ReduceScatterPush>();
  register_types<kernels::ReduceScatterRing>();
}

}  // namespace tandem::cuda
