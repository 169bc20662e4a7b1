// The recording variants of kernels that move bytes.

#include "collectives/all_gather/ll.h"
#include "collectives/all_gather/push.h"
#include "collectives/all_gather/ring.h"
#include "collectives/all_gather/two_level.h"
#include "collectives/all_gather/two_level_ll.h"
#include "collectives/all_to_all/ll.h"
#include "collectives/all_to_all/push.h"
#include "collectives/barrier/barrier.h"
#include "collectives/broadcast/chain.h"
#include "collectives/broadcast/direct.h"
#include "collectives/broadcast/ll.h"
#include "collectives/broadcast/pull.h"
#include "collectives/broadcast/scatter_all_gather.h"
#include "collectives/broadcast/scatter_ll.h"
#include "collectives/broadcast/tree.h"
#include "collectives/cuda/profiled_types.cuh"
#include "collectives/cuda/register.h"
#include "collectives/gather_scatter/gather_direct.h"
#include "collectives/gather_scatter/scatter_direct.h"
#include "collectives/plan/copy_engine.h"
#include "collectives/send_recv/exchange_put_signal.h"
#include "collectives/send_recv/group.h"
#include "collectives/send_recv/ll.h"
#include "collectives/send_recv/ring.h"
#include "collectives/steps/reduce_copies.h"
#include "tandem/send_recv.h"

namespace tandem::cuda {

namespace {

template <class... K>
void register_profiled_byte_kernels() {
  (register_profiled_kernel<K, kThreads>(), ...);
}

}  // namespace

void register_profiled_move() {
  using namespace kernels;
  register_profiled_byte_kernels<AllGatherLL, AllGatherLL128, AllToAllLL128, BroadcastLL, BroadcastLL128,
                                 BroadcastScatterLL128, ExchangeLL, ExchangeLL128, SendRecvLL, SendRecvLL128>();
  register_profiled_byte_kernels<AllGatherPush, AllGatherRing, AllGatherTwoLevel, AllGatherTwoLevelLL, AllToAllLL,
                                 AllToAllPush, BroadcastChain, BroadcastDirect, BroadcastPull, BroadcastScatterAllGather,
                                 BroadcastTree<2>, ExchangePutSignal, GatherDirect, ScatterDirect, SendRecvRing>();
  using Pairs = SendRecvPairs<SendRecvGroup::kMostMessages>;
  register_profiled_kernel<Pairs, Pairs::kThreads>();
  constexpr int kOneWarp = 32;
  register_profiled_kernel<BarrierAll, kOneWarp>();
  register_profiled_kernel<CopyEngineBegin, kOneWarp>();
  register_profiled_kernel<CopyEngineEndPush, kOneWarp>();
  register_profiled_kernel<CopyEngineEndPull, kOneWarp>();
  register_profiled_kernel<CopyOwnPart, kThreads>();
  register_profiled_types<CopiedReduce>();
}

}  // namespace tandem::cuda
