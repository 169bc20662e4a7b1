// The recorded forms of what moves bytes.

#include "cuda/recorded_types.cuh"
#include "kernels/all_gather_ll.h"
#include "kernels/all_gather_push.h"
#include "kernels/all_gather_ring.h"
#include "kernels/all_gather_two_level.h"
#include "kernels/all_gather_two_level_ll.h"
#include "kernels/all_to_all_ll.h"
#include "kernels/all_to_all_push.h"
#include "kernels/barrier.h"
#include "kernels/broadcast_chain.h"
#include "kernels/broadcast_direct.h"
#include "kernels/broadcast_ll.h"
#include "kernels/broadcast_scatter_all_gather.h"
#include "kernels/broadcast_scatter_ll.h"
#include "kernels/broadcast_tree.h"
#include "kernels/copy_engine.h"
#include "kernels/exchange_put_signal.h"
#include "kernels/gather_direct.h"
#include "kernels/reduce_copies.h"
#include "kernels/scatter_direct.h"
#include "kernels/send_recv_group.h"
#include "kernels/send_recv_ll.h"
#include "kernels/send_recv_ring.h"
#include "tandem/send_recv.h"

namespace tandem::cuda {

namespace {

template <class... K>
void register_recorded_byte_kernels() {
  (register_recorded_kernel<K, kThreads>(), ...);
}

}  // namespace

void register_recorded_move() {
  using namespace kernels;
  register_recorded_byte_kernels<AllGatherLL, AllGatherLL128, AllToAllLL128, BroadcastLL, BroadcastLL128,
                                 BroadcastScatterLL128, ExchangeLL, ExchangeLL128, SendRecvLL, SendRecvLL128>();
  register_recorded_byte_kernels<AllGatherPush, AllGatherRing, AllGatherTwoLevel, AllGatherTwoLevelLL, AllToAllLL,
                                 AllToAllPush, BroadcastChain, BroadcastDirect, BroadcastScatterAllGather,
                                 BroadcastTree<2>, ExchangePutSignal, GatherDirect, ScatterDirect, SendRecvRing>();
  using Pairs = SendRecvPairs<SendRecvGroup::kMostMessages>;
  register_recorded_kernel<Pairs, Pairs::kThreads>();
  constexpr int kOneWarp = 32;
  register_recorded_kernel<BarrierAll, kOneWarp>();
  register_recorded_kernel<CopyEngineBegin, kOneWarp>();
  register_recorded_kernel<CopyEngineEndPush, kOneWarp>();
  register_recorded_kernel<CopyEngineEndPull, kOneWarp>();
  register_recorded_kernel<CopyOwnPart, kThreads>();
  register_recorded_types<CopiedReduce>();
}

}  // namespace tandem::cuda
