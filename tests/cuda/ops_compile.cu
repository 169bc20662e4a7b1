// The operators' portable kernels as device code, against the block's contract.

#include "operators/all_gather_gemm/all_gather_pull.h"
#include "operators/all_gather_gemm/all_gather_push.h"
#include "operators/gemm_all_reduce/sum_and_fetch.h"
#include "operators/gemm_all_reduce/sum_of_all.h"
#include "operators/plan/acquire_buffer.h"
#include "operators/ring/ring_steps.h"
#include "operators/steps/notify_collector.h"
#include "operators/steps/rail_send.h"
#include "operators/steps/reduce_shards.h"
#include "operators/steps/steps.h"
#include "tune/consensus.h"

namespace tandem::ops {

template <class K>
__global__ void kernel(BlockContract* block, typename K::Args args) {
  K::run(*block, args);
}

#define TANDEM_COMPILE(K) template __global__ void kernel<K>(BlockContract*, typename K::Args)

TANDEM_COMPILE(BeginReleased);
TANDEM_COMPILE(AcquireBuffer);
TANDEM_COMPILE(Release);
TANDEM_COMPILE(AwaitReleased);
TANDEM_COMPILE(AwaitWord);
TANDEM_COMPILE(AwaitCount);
TANDEM_COMPILE(AwaitShards);
TANDEM_COMPILE(NotifyCollector);
TANDEM_COMPILE(RingBegin);
TANDEM_COMPILE(RingAwait);
TANDEM_COMPILE(RailSend);
TANDEM_COMPILE(AllGatherPush);
TANDEM_COMPILE(AllGatherPull);
TANDEM_COMPILE(ReduceShards<float>);
TANDEM_COMPILE(ReduceShards<f16>);
TANDEM_COMPILE(ReduceShards<bf16>);
TANDEM_COMPILE(tune::SignalToAll);
TANDEM_COMPILE(SumAndFetch<float>);
TANDEM_COMPILE(SumAndFetch<f16>);
TANDEM_COMPILE(SumAndFetch<bf16>);
TANDEM_COMPILE(SumOfAll<float>);
TANDEM_COMPILE(SumOfAll<f16>);
TANDEM_COMPILE(SumOfAll<bf16>);

}  // namespace tandem::ops
