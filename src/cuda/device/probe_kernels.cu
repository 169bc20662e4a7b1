#include "cuda/device/probe_kernels.h"
#include "cuda/driver/error.h"
#include "cuda/driver/launch.h"
#include "tandem/impl/cuda/ptx.cuh"

namespace tandem::cuda {

namespace {

constexpr std::uint64_t kTimeoutNs = 2'000'000'000;

__device__ std::uint64_t now_ns() {
  std::uint64_t ns;
  asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(ns));
  return ns;
}

/// Returns false without an answer.
__device__ bool wait_for(const std::uint64_t* word, std::uint64_t value, bool ordered) {
  std::uint64_t begin = 0;
  for (std::uint32_t i = 1;; ++i) {
    const std::uint64_t seen = ordered ? load_acquire(word) : load_relaxed(word);
    if (seen >= value) return true;
    if (i % 4096 != 0) continue;
    if (begin == 0) begin = now_ns();
    if (now_ns() - begin > kTimeoutNs) return false;
  }
}

__device__ void play(std::uint64_t* mine, std::uint64_t* theirs, int rounds, bool begins, bool ordered,
                     std::uint64_t* ns) {
  constexpr int kFirst = 100;  // rounds that synchronise both sides
  std::uint64_t begin = 0;
  for (int round = 1; round <= kFirst + rounds; ++round) {
    const auto value = static_cast<std::uint64_t>(round);
    if (round == kFirst + 1) begin = now_ns();
    if (!begins && !wait_for(mine, value, ordered)) {
      *ns = 0;
      return;
    }
    if (ordered)
      store_release(theirs, value);
    else
      store_relaxed(theirs, value);
    if (begins && !wait_for(mine, value, ordered)) {
      *ns = 0;
      return;
    }
  }
  *ns = now_ns() - begin;
}

__global__ void ping_pong(std::uint64_t* mine, std::uint64_t* theirs, int rounds, bool begins, bool ordered,
                          std::uint64_t* ns) {
  play(mine, theirs, rounds, begins, ordered, ns);
}

__global__ void local_ping_pong(std::uint64_t* words, int rounds, std::uint64_t* ns) {
  std::uint64_t other = 0;
  const bool begins = blockIdx.x == 0;
  play(words + (begins ? 0 : 16), words + (begins ? 16 : 0), rounds, begins, true, begins ? ns : &other);
}

__global__ void chase(const std::uint64_t* chain, int steps, std::uint64_t* ns) {
  std::uint64_t at = 0;
  for (int i = 0; i < 64; ++i) at = *reinterpret_cast<const volatile std::uint64_t*>(chain + at);
  const std::uint64_t begin = now_ns();
  for (int i = 0; i < steps; ++i) at = *reinterpret_cast<const volatile std::uint64_t*>(chain + at);
  *ns = now_ns() - begin + (at == ~std::uint64_t{0} ? 1 : 0);
}

__global__ void __launch_bounds__(kProbeThreads, 1) stream(Vector* to, const Vector* from, Size vectors) {
  constexpr int kInFlight = 4;
  const Size step = Size{gridDim.x} * kProbeThreads * kInFlight;
  Vector v[kInFlight]{};
  std::uint32_t sum = 0;
  for (Size at = (Size{blockIdx.x} * kInFlight) * kProbeThreads + threadIdx.x; at < vectors; at += step) {
    if (from != nullptr) {
#pragma unroll
      for (int i = 0; i < kInFlight; ++i) v[i] = load_vector(from + min(at + i * kProbeThreads, vectors - 1));
    }
    if (to != nullptr) {
#pragma unroll
      for (int i = 0; i < kInFlight; ++i)
        if (at + i * kProbeThreads < vectors) store_vector(to + at + i * kProbeThreads, v[i]);
    } else {
#pragma unroll
      for (int i = 0; i < kInFlight; ++i) sum ^= v[i].word[0] ^ v[i].word[3];
    }
  }
  // The condition keeps the reads; the buffers have no such pattern in every word.
  if (to == nullptr && sum == 0x9E3779B9U) __nanosleep(1);
}

__global__ void empty() {
#if __CUDA_ARCH__ >= 900
  asm volatile("griddepcontrol.wait;" ::: "memory");
  asm volatile("griddepcontrol.launch_dependents;" ::: "memory");
#endif
}

}  // namespace

void launch_ping_pong(cudaStream_t stream, std::uint64_t* mine, std::uint64_t* theirs, int rounds, bool begins,
                      bool ordered, std::uint64_t* ns) {
  launch_kernel("launching a probe", &ping_pong, dim3(1), 1, stream, mine, theirs, rounds, begins, ordered, ns);
}

void launch_local_ping_pong(cudaStream_t stream, std::uint64_t* words, int rounds, std::uint64_t* ns) {
  launch_kernel("launching a probe", &local_ping_pong, dim3(2), 1, stream, words, rounds, ns);
}

void launch_chase(cudaStream_t stream, const std::uint64_t* chain, int steps, std::uint64_t* ns) {
  launch_kernel("launching a probe", &chase, dim3(1), 1, stream, chain, steps, ns);
}

void launch_stream(cudaStream_t cuda_stream, int blocks, void* to, const void* from, Size bytes) {
  launch_kernel("launching a probe", &stream, dim3(static_cast<unsigned>(blocks)), kProbeThreads, cuda_stream,
                static_cast<Vector*>(to), static_cast<const Vector*>(from), bytes / Size{sizeof(Vector)});
}

void launch_empty(cudaStream_t stream, bool early) {
  cudaLaunchConfig_t config{};
  config.gridDim = dim3(1);
  config.blockDim = dim3(32);
  config.stream = stream;
  cudaLaunchAttribute programmatic{};
  programmatic.id = cudaLaunchAttributeProgrammaticStreamSerialization;
  programmatic.val.programmaticStreamSerializationAllowed = 1;
  config.attrs = &programmatic;
  config.numAttrs = early ? 1 : 0;
  check(cudaLaunchKernelEx(&config, &empty), "launching a probe");
}

void load_probe_kernels() {
  cudaFuncAttributes attributes{};
  check(cudaFuncGetAttributes(&attributes, &ping_pong), "loading a probe");
  check(cudaFuncGetAttributes(&attributes, &local_ping_pong), "loading a probe");
  check(cudaFuncGetAttributes(&attributes, &chase), "loading a probe");
  check(cudaFuncGetAttributes(&attributes, &stream), "loading a probe");
  check(cudaFuncGetAttributes(&attributes, &empty), "loading a probe");
}

}  // namespace tandem::cuda
