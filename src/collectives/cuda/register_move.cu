// The GPU kernels that move bytes.

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
#include "collectives/cuda/register.h"
#include "collectives/cuda/register_types.cuh"
#include "collectives/gather_scatter/gather_direct.h"
#include "collectives/gather_scatter/scatter_direct.h"
#include "collectives/send_recv/exchange_put_signal.h"
#include "collectives/send_recv/group.h"
#include "collectives/send_recv/ll.h"
#include "collectives/send_recv/ring.h"
#include "tandem/send_recv.h"

namespace tandem::cuda {

namespace {

template <class... K>
void register_byte_kernels() {
  (register_kernel<K, kThreads>(), ...);
}

}  // namespace

void register_move() {
  using namespace kernels;
  register_byte_kernels<AllGatherLL, AllGatherLL128, AllToAllLL128, BroadcastLL, BroadcastLL128, BroadcastScatterLL128,
                        ExchangeLL, ExchangeLL128, SendRecvLL, SendRecvLL128>();
  register_byte_kernels<AllGatherPush, AllGatherRing, AllGatherTwoLevel, AllGatherTwoLevelLL, AllToAllLL, AllToAllPush,
                        BroadcastChain, BroadcastDirect, BroadcastPull, BroadcastScatterAllGather, BroadcastTree<2>, ExchangePutSignal,
                        GatherDirect, ScatterDirect, SendRecvRing>();
  using Pairs = SendRecvPairs<SendRecvGroup::kMostMessages>;
  register_kernel<Pairs, Pairs::kThreads>();
  register_kernel<BarrierAll, 32>();
}

}  // namespace tandem::cuda
