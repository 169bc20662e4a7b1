// The GPU kernels of operators that move and add data.

#include "operators/all_gather_gemm/all_gather_pull.h"
#include "operators/all_gather_gemm/all_gather_push.h"
#include "operators/cuda/register.h"
#include "operators/gemm_all_reduce/fetch_rows.h"
#include "operators/gemm_all_reduce/sum_and_fetch.h"
#include "operators/gemm_all_reduce/sum_of_all.h"
#include "operators/steps/rail_send.h"
#include "operators/steps/reduce_shards.h"
#include "tandem/advanced/cuda_kernel.cuh"

namespace tandem::cuda {

void register_operators() {
  using namespace ops;
  constexpr int kThreads = 1024;  // as the transports launch them
  register_kernel<AllGatherPush, kThreads>();
  register_kernel<AllGatherPull, kThreads>();
  register_kernel<ReduceShards<float>, kThreads>();
  register_kernel<ReduceShards<f16>, kThreads>();
  register_kernel<ReduceShards<bf16>, kThreads>();
  constexpr int kSumThreads = 512;
  register_kernel<SumAndFetch<float>, kSumThreads>();
  register_kernel<SumAndFetch<f16>, kSumThreads>();
  register_kernel<SumAndFetch<bf16>, kSumThreads>();
  register_kernel<SumOfAll<float>, kSumThreads>();
  register_kernel<SumOfAll<f16>, kSumThreads>();
  register_kernel<SumOfAll<bf16>, kSumThreads>();
  register_kernel<FetchRows, kFetchThreads>();
  register_kernel<RailSend, 32>();
}

}  // namespace tandem::cuda
