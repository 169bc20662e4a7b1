// Kernels of each kind, down to PTX, for every architecture of the backend. They use stores and signals, packets,
// arithmetic on 16-bit and 8-bit floats, and roles within a block.

#include "collectives/all_gather/push.h"
#include "collectives/all_reduce/two_shot.h"
#include "collectives/all_reduce/two_shot_ll.h"
#include "collectives/barrier/barrier.h"
#include "collectives/broadcast/tree.h"
#include "collectives/send_recv/ll.h"
#include "tandem/advanced/cuda_kernel.cuh"

namespace tandem::cuda {

void register_one_of_each_kind() {
  constexpr int kThreads = 512;
  using namespace kernels;
  register_kernel<AllGatherPush, kThreads>();
  register_kernel<AllReduceTwoShot<bf16>, kThreads>();
  register_kernel<AllReduceTwoShot<fp8_e4m3>, kThreads>();
  register_kernel<AllReduceTwoShotLL128<f16>, kThreads>();
  register_kernel<BroadcastTree<2>, kThreads>();
  register_kernel<SendRecvLL, kThreads>();
  register_kernel<BarrierAll, 32>();
}

}  // namespace tandem::cuda
