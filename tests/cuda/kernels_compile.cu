// Every portable kernel as device code, against the block's contract: what a GPU compiler could not take is an error
// here.

#include "collectives/all_gather/ll.h"
#include "collectives/all_gather/push.h"
#include "collectives/all_gather/ring.h"
#include "collectives/all_gather/two_level.h"
#include "collectives/all_gather/two_level_ll.h"
#include "collectives/all_reduce/multi_ring.h"
#include "collectives/all_reduce/multimem.h"
#include "collectives/all_reduce/one_shot.h"
#include "collectives/all_reduce/one_shot_ll.h"
#include "collectives/all_reduce/recursive_doubling.h"
#include "collectives/all_reduce/ring.h"
#include "collectives/all_reduce/ring_simple.h"
#include "collectives/all_reduce/tree.h"
#include "collectives/all_reduce/two_shot.h"
#include "collectives/all_reduce/two_shot_ll.h"
#include "collectives/all_reduce_norm/one_shot_ll.h"
#include "collectives/all_reduce_norm/two_shot.h"
#include "collectives/all_to_all/ll.h"
#include "collectives/all_to_all/push.h"
#include "collectives/barrier/barrier.h"
#include "collectives/broadcast/chain.h"
#include "collectives/broadcast/direct.h"
#include "collectives/broadcast/ll.h"
#include "collectives/broadcast/scatter_all_gather.h"
#include "collectives/broadcast/scatter_ll.h"
#include "collectives/broadcast/tree.h"
#include "collectives/gather_scatter/gather_direct.h"
#include "collectives/gather_scatter/scatter_direct.h"
#include "collectives/merge_heads/packets.h"
#include "collectives/plan/copy_engine.h"
#include "collectives/reduce/direct.h"
#include "collectives/reduce/tree.h"
#include "collectives/reduce_scatter/ll.h"
#include "collectives/reduce_scatter/pull.h"
#include "collectives/reduce_scatter/push.h"
#include "collectives/reduce_scatter/ring.h"
#include "collectives/reduce_scatter/two_level.h"
#include "collectives/send_recv/exchange_put_signal.h"
#include "collectives/send_recv/group.h"
#include "collectives/send_recv/ll.h"
#include "collectives/send_recv/ring.h"
#include "collectives/steps/reduce_copies.h"

namespace tandem::kernels {

template <class K>
__global__ void kernel(BlockContract* block, typename K::Args args) {
  K::run(*block, args);
}

#define TANDEM_COMPILE(K) template __global__ void kernel<K>(BlockContract*, typename K::Args)

TANDEM_COMPILE(AllGatherLL);
TANDEM_COMPILE(AllGatherLL128);
TANDEM_COMPILE(AllReduceOneShotLL128<bf16>);
TANDEM_COMPILE(AllReduceTwoShotLL128<bf16>);
#define TANDEM_COMPILE_NORM(K, T, Q) template __global__ void kernel<K<T, Q>>(BlockContract*, K<T, Q>::Args)
TANDEM_COMPILE_NORM(AllReduceNormOneShotLL128, bf16, fp8_e4m3);
TANDEM_COMPILE_NORM(AllReduceNormTwoShot, float, float);
TANDEM_COMPILE(AllToAllLL128);
TANDEM_COMPILE(BroadcastLL);
TANDEM_COMPILE(BroadcastLL128);
TANDEM_COMPILE(BroadcastScatterLL128);
TANDEM_COMPILE(CopiedReduceBegin<bf16>);
TANDEM_COMPILE(CopiedReduce<bf16>);
TANDEM_COMPILE(ExchangeLL);
TANDEM_COMPILE(ExchangeLL128);
TANDEM_COMPILE(ReduceScatterLL<float>);
TANDEM_COMPILE(ReduceScatterLL128<bf16>);
TANDEM_COMPILE(MergeHeadsLL<float>);
TANDEM_COMPILE(MergeHeadsLL128<bf16>);
TANDEM_COMPILE(SendRecvLL);
TANDEM_COMPILE(SendRecvLL128);
TANDEM_COMPILE(AllGatherPush);
TANDEM_COMPILE(AllGatherRing);
TANDEM_COMPILE(AllGatherTwoLevel);
TANDEM_COMPILE(AllGatherTwoLevelLL);
TANDEM_COMPILE(AllReduceMultiRing<float>);
TANDEM_COMPILE(AllReduceMultiRing<bf16>);
TANDEM_COMPILE(AllReduceMultiRing<std::int8_t>);
TANDEM_COMPILE(AllReduceMultimem<float>);
TANDEM_COMPILE(AllReduceMultimem<bf16>);
TANDEM_COMPILE(AllReduceMultimem<std::int8_t>);
TANDEM_COMPILE(AllReduceOneShot<float>);
TANDEM_COMPILE(AllReduceOneShot<bf16>);
TANDEM_COMPILE(AllReduceOneShot<std::int8_t>);
TANDEM_COMPILE(AllReduceOneShotLL<float>);
TANDEM_COMPILE(AllReduceOneShotLL<bf16>);
TANDEM_COMPILE(AllReduceOneShotLL<std::int8_t>);
TANDEM_COMPILE(AllReduceRecursiveDoubling<float>);
TANDEM_COMPILE(AllReduceRecursiveDoubling<bf16>);
TANDEM_COMPILE(AllReduceRecursiveDoubling<std::int8_t>);
TANDEM_COMPILE(AllReduceRing<float>);
TANDEM_COMPILE(AllReduceRing<bf16>);
TANDEM_COMPILE(AllReduceRing<std::int8_t>);
TANDEM_COMPILE(AllReduceRingSimple<float>);
TANDEM_COMPILE(AllReduceRingSimple<bf16>);
TANDEM_COMPILE(AllReduceRingSimple<std::int8_t>);
TANDEM_COMPILE(AllReduceTree<float>);
TANDEM_COMPILE(AllReduceTree<bf16>);
TANDEM_COMPILE(AllReduceTree<std::int8_t>);
TANDEM_COMPILE(AllReduceTwoShot<float>);
TANDEM_COMPILE(AllReduceTwoShot<bf16>);
TANDEM_COMPILE(AllReduceTwoShot<std::int8_t>);
TANDEM_COMPILE(AllReduceTwoShotLL<float>);
TANDEM_COMPILE(AllReduceTwoShotLL<bf16>);
TANDEM_COMPILE(AllReduceTwoShotLL<std::int8_t>);
TANDEM_COMPILE(AllToAllLL);
TANDEM_COMPILE(AllToAllPush);
TANDEM_COMPILE(BarrierAll);
TANDEM_COMPILE(BroadcastDirect);
TANDEM_COMPILE(BroadcastScatterAllGather);
TANDEM_COMPILE(BroadcastChain);
TANDEM_COMPILE(BroadcastTree<2>);
TANDEM_COMPILE(CopyEngineBegin);
TANDEM_COMPILE(CopyEngineEndPush);
TANDEM_COMPILE(CopyEngineEndPull);
TANDEM_COMPILE(ExchangePutSignal);
TANDEM_COMPILE(GatherDirect);
TANDEM_COMPILE(ReduceDirect<float>);
TANDEM_COMPILE(ReduceDirect<bf16>);
TANDEM_COMPILE(ReduceDirect<std::int8_t>);
TANDEM_COMPILE(ReduceScatterPull<float>);
TANDEM_COMPILE(ReduceScatterPull<bf16>);
TANDEM_COMPILE(ReduceScatterPull<std::int8_t>);
TANDEM_COMPILE(ReduceScatterPush<float>);
TANDEM_COMPILE(ReduceScatterPush<bf16>);
TANDEM_COMPILE(ReduceScatterPush<std::int8_t>);
TANDEM_COMPILE(ReduceScatterRing<float>);
TANDEM_COMPILE(ReduceScatterRing<bf16>);
TANDEM_COMPILE(ReduceScatterRing<std::int8_t>);
TANDEM_COMPILE(ReduceScatterTwoLevel<float>);
TANDEM_COMPILE(ReduceScatterTwoLevel<bf16>);
TANDEM_COMPILE(ReduceScatterTwoLevel<std::int8_t>);
TANDEM_COMPILE(ReduceTree<float>);
TANDEM_COMPILE(ReduceTree<bf16>);
TANDEM_COMPILE(ReduceTree<std::int8_t>);
TANDEM_COMPILE(ScatterDirect);
TANDEM_COMPILE(SendRecvPairs<8>);
TANDEM_COMPILE(SendRecvRing);

}  // namespace tandem::kernels
