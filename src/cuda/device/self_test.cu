#include "cuda/device/self_test.h"
#include "cuda/driver/launch.h"

namespace tandem::cuda {

namespace {

constexpr int kThreads = 512;
constexpr int kBlocksAPair = 4;

/// Returns another value for each word, pair and direction, so that a misdirected word is found, too.
__device__ std::uint64_t pattern(const SelfTest& test, int from, int to, Size word) {
  std::uint64_t x = (static_cast<std::uint64_t>(from) * 4096 + to) * kSelfTestWords + word + 1;
  x *= 0x9E3779B97F4A7C15ULL;  // 2^64 over the golden ratio: spreads neighbours over all bits
  x ^= x >> 29;
  return test.round == 0 ? x : ~x;
}

__device__ volatile std::uint64_t* slot(const SelfTest& test, int from, int to) {
  return reinterpret_cast<volatile std::uint64_t*>(test.base + to * test.stride) + from * kSelfTestWords;
}

__global__ void __launch_bounds__(kThreads) writes_kernel(SelfTest test) {
  const int to = static_cast<int>(blockIdx.y);
  volatile std::uint64_t* const words = slot(test, test.me, to);
  for (Size i = blockIdx.x * kThreads + threadIdx.x; i < kSelfTestWords; i += kBlocksAPair * kThreads)
    words[i] = pattern(test, test.me, to, i);
  __threadfence_system();
}

/// blockIdx.y below `pes` checks words that others wrote here, the others check words that are read back.
__global__ void __launch_bounds__(kThreads) reads_kernel(SelfTest test, std::uint32_t* wrong) {
  const int other = static_cast<int>(blockIdx.y) % test.pes;
  const bool is_here = static_cast<int>(blockIdx.y) < test.pes;
  const int from = is_here ? other : test.me;
  const int to = is_here ? test.me : other;
  const volatile std::uint64_t* const words = slot(test, from, to);
  unsigned count = 0;
  for (Size i = blockIdx.x * kThreads + threadIdx.x; i < kSelfTestWords; i += kBlocksAPair * kThreads)
    if (words[i] != pattern(test, from, to, i)) ++count;
  if (count > 0) atomicAdd_system(wrong + blockIdx.y, count);
}

}  // namespace

void launch_self_test_writes(cudaStream_t stream, const SelfTest& test) {
  launch_kernel("self-test", &writes_kernel, dim3(kBlocksAPair, static_cast<unsigned>(test.pes)), kThreads, stream,
                test);
}

void launch_self_test_reads(cudaStream_t stream, const SelfTest& test, std::uint32_t* wrong) {
  launch_kernel("self-test", &reads_kernel, dim3(kBlocksAPair, static_cast<unsigned>(2 * test.pes)), kThreads, stream,
                test, wrong);
}

}  // namespace tandem::cuda
