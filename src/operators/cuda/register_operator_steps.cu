// The GPU kernels of the operators' steps between copies and GEMMs. They are compiled for at most 32 registers a
// thread, so that they fit beside a persistent GEMM.

#include "operators/cuda/register.h"
#include "operators/gemm_all_reduce/fetch_rows.h"
#include "operators/plan/acquire_buffer.h"
#include "operators/ring/ring_steps.h"
#include "operators/steps/notify_collector.h"
#include "operators/steps/steps.h"
#include "tandem/advanced/cuda_kernel.cuh"
#include "tune/consensus.h"

namespace tandem::cuda {

void register_operator_steps() {
  using namespace ops;
  register_kernel<NextEpoch, 32>();
  register_kernel<BeginReleased, 32>();
  register_kernel<AcquireBuffer, 32>();
  register_kernel<Release, 32>();
  register_kernel<AwaitReleased, 32>();
  register_kernel<AwaitWord, 32>();
  register_kernel<AwaitCount, 32>();
  register_kernel<tune::SignalToAll, 32>();
  register_kernel<AwaitShards, 32>();
  register_kernel<NotifyCollector, 32>();
  register_kernel<RingBegin, 32>();
  register_kernel<RingAwait, 32>();
  register_kernel<NotifyRows, 32>();
  register_kernel<BeginFetch, 32>();
}

}  // namespace tandem::cuda
