#include "gpu/memory/litmus_device.h"

#include "gpu/collectives/stress_kernels.h"
#include "gpu/memory/litmus_kernels.h"
#include "support/block_cases.h"
#include "support/expert_stress_kernels.h"
#include "tandem/advanced/cuda_kernel.cuh"

namespace tandem::test {

namespace {

__global__ void __launch_bounds__(32) delay_kernel(Epoch* word, std::uint64_t seed, std::uint64_t most_ns) {
  if (threadIdx.x != 0) return;
  std::uint64_t x = (*word + 1) * 0x9E3779B97F4A7C15U + seed * 0xC2B2AE3D27D4EB4FU;
  *word += 1;
  x ^= x >> 30;
  x *= 0xBF58476D1CE4E5B9U;
  x ^= x >> 27;
  if (x % 4 != 0) return;
  const std::uint64_t begin = cuda::global_timer();
  while (cuda::global_timer() - begin < (x >> 32) % most_ns) {
  }
}

__global__ void __launch_bounds__(32) tma_reader(const Signal* word, const Epoch* epochs, const std::uint32_t* data,
                                                 const std::uint32_t* base, std::uint32_t* differences, int count) {
#if __CUDA_ARCH__ >= 900  // the tensor-memory engine came with it
  extern __shared__ __align__(128) std::uint32_t copy[];
  __shared__ __align__(8) std::uint64_t barrier;
  const auto barrier_at = static_cast<std::uint32_t>(__cvta_generic_to_shared(&barrier));
  const Epoch e = *epochs;
  if (threadIdx.x == 0) {
    asm volatile("mbarrier.init.shared.b64 [%0], 1;" ::"r"(barrier_at) : "memory");
    while (cuda::load_acquire(&word->value) < e) {
    }
    cuda::fence_proxy_async();  // as consume_token
    asm volatile("mbarrier.arrive.expect_tx.shared.b64 _, [%0], %1;" ::"r"(barrier_at), "r"(count * 4) : "memory");
    asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];" ::"r"(
                     static_cast<std::uint32_t>(__cvta_generic_to_shared(copy))),
                 "l"(data), "r"(count * 4), "r"(barrier_at)
                 : "memory");
    for (std::uint32_t done = 0; done == 0;)
      asm volatile("{ .reg .pred p; mbarrier.try_wait.parity.shared.b64 p, [%1], 0; selp.u32 %0, 1, 0, p; }"
                   : "=r"(done)
                   : "r"(barrier_at)
                   : "memory");
  }
  __syncwarp();
  for (int i = static_cast<int>(threadIdx.x); i < count; i += 32)
    differences[i] |= copy[i] ^ (base[i] + static_cast<std::uint32_t>(e));
#endif
}

}  // namespace

void launch_delay(cudaStream_t stream, Epoch* word, std::uint64_t seed, double most_us) {
  delay_kernel<<<1, 32, 0, stream>>>(word, seed, static_cast<std::uint64_t>(most_us * 1000) + 1);
}

void launch_tma_reader(cudaStream_t stream, const Signal* word, const Epoch* epochs, const std::uint32_t* data,
                       const std::uint32_t* base, std::uint32_t* differences, int count) {
  tma_reader<<<1, 32, count * 4, stream>>>(word, epochs, data, base, differences, count);
}

void register_litmus_kernels() {
  constexpr int kThreads = 512;
  using namespace cuda;
  register_kernel<StoreNotify, kThreads>();
  register_kernel<StoreFenceSignal, kThreads>();
  register_kernel<PutSignal, kThreads>();
  register_kernel<Packets<LLPacket>, kThreads>();
  register_kernel<Packets<LL128Line>, kThreads>();
  register_kernel<Transitive, kThreads>();
  register_kernel<Copied, kThreads>();
  register_kernel<FillForCopy, kThreads>();
  register_kernel<StressFill, kThreads>();
  register_kernel<StressCheck, kThreads>();
  register_kernel<LateStart, kThreads>();
  register_kernel<SameWords, kThreads>();
  each_block_case([](auto type) {
    using Case = typename decltype(type)::type;
    register_kernel<Case, Case::kThreads>();
  });
}

}  // namespace tandem::test
