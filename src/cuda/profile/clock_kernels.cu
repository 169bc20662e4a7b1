#include "cuda/driver/error.h"
#include "cuda/driver/launch.h"
#include "cuda/profile/clock_kernels.h"
#include "tandem/impl/cuda/ptx.cuh"

namespace tandem::cuda {

namespace {

constexpr std::uint64_t kTimeoutNs = 1'000'000'000;

constexpr std::uint64_t kLowerHalf = 0xFFFF'FFFF;

__device__ void send(Mail* to, std::uint32_t number, std::uint64_t time) {
  const std::uint64_t flag = static_cast<std::uint64_t>(number) << 32;
  store_packets(to, {{flag | time >> 32, flag | (time & kLowerHalf)}});
}

/// Waits for the mail with that number. Returns false if it did not arrive in time.
__device__ bool receive(const Mail* from, std::uint32_t number, std::uint64_t& time) {
  const std::uint64_t begin = global_timer();
  for (unsigned polls = 1;; ++polls) {
    const PacketPair mail = load_packets(from);
    time = mail.packet[0] << 32 | (mail.packet[1] & kLowerHalf);
    if (mail.packet[0] >> 32 == number && mail.packet[1] >> 32 == number) return true;
    if (polls % 1024 == 0 && global_timer() - begin > kTimeoutNs) return false;
  }
}

__global__ void __launch_bounds__(32)
    ping_kernel(Mail* own, Mail* peers, trace::Exchange* exchanges, int rounds, std::uint32_t before) {
  if (threadIdx.x != 0) return;
  for (int i = 0; i < rounds; ++i) {
    std::uint64_t answered = 0;
    const std::uint64_t sent = global_timer();
    send(peers, before + 1 + static_cast<std::uint32_t>(i), sent);
    if (!receive(own, before + 1 + static_cast<std::uint32_t>(i), answered)) return;
    const std::uint64_t received = global_timer();
    exchanges[i] = {static_cast<std::int64_t>(sent), static_cast<std::int64_t>(answered),
                    static_cast<std::int64_t>(received)};
  }
}

__global__ void __launch_bounds__(32) pong_kernel(Mail* own, Mail* peers, int rounds, std::uint32_t before) {
  if (threadIdx.x != 0) return;
  for (int i = 0; i < rounds; ++i) {
    std::uint64_t sent = 0;
    if (!receive(own, before + 1 + static_cast<std::uint32_t>(i), sent)) return;
    send(peers, before + 1 + static_cast<std::uint32_t>(i), global_timer());
  }
}

__global__ void __launch_bounds__(32) answers_kernel(HostMail* mail, int rounds, std::uint32_t before) {
  if (threadIdx.x != 0) return;
  const std::uint64_t begin = global_timer();
  for (int i = 0; i < rounds; ++i) {
    const std::uint32_t number = before + 1 + static_cast<std::uint32_t>(i);
    while (mail->question != number)
      if (global_timer() - begin > kTimeoutNs) return;
    mail->time = global_timer();
    fence_system();
    mail->answer = number;
  }
}

}  // namespace

void launch_ping(cudaStream_t stream, Mail* own, Mail* peers, trace::Exchange* exchanges, int rounds,
                 std::uint32_t before) {
  launch_kernel("clock alignment", &ping_kernel, dim3(1), 32, stream, own, peers, exchanges, rounds, before);
}

void launch_pong(cudaStream_t stream, Mail* own, Mail* peers, int rounds, std::uint32_t before) {
  launch_kernel("clock alignment", &pong_kernel, dim3(1), 32, stream, own, peers, rounds, before);
}

void launch_answers(cudaStream_t stream, HostMail* mail, int rounds, std::uint32_t before) {
  launch_kernel("clock alignment", &answers_kernel, dim3(1), 32, stream, mail, rounds, before);
}

void load_clock_kernels() {
  cudaFuncAttributes attributes{};
  check(cudaFuncGetAttributes(&attributes, &ping_kernel), "loading a kernel");
  check(cudaFuncGetAttributes(&attributes, &pong_kernel), "loading a kernel");
  check(cudaFuncGetAttributes(&attributes, &answers_kernel), "loading a kernel");
}

}  // namespace tandem::cuda
