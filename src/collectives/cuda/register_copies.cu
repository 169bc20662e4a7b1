// The GPU kernels before, between and after copies of copy engines.

#include "collectives/cuda/register.h"
#include "collectives/cuda/register_types.cuh"
#include "collectives/plan/copy_engine.h"
#include "collectives/steps/reduce_copies.h"

namespace tandem::cuda {

namespace {

constexpr int kOneWarp = 32;

template <class... T>
void register_begins() {
  (register_kernel<kernels::CopiedReduceBegin<T>, kOneWarp>(), ...);
}

}  // namespace

void register_copies() {
  using namespace kernels;
  register_kernel<CopyEngineBegin, kOneWarp>();
  register_kernel<CopyEngineEndPush, kOneWarp>();
  register_kernel<CopyEngineEndPull, kOneWarp>();
  register_kernel<CopyOwnPart, kThreads>();
  register_begins<float, f16, bf16, fp8_e4m3, fp8_e5m2, std::int8_t, std::uint8_t, std::int32_t, std::uint32_t,
                  std::int64_t, std::uint64_t, double>();
  register_types<CopiedReduce>();
}

}  // namespace tandem::cuda
