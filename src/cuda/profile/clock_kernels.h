#pragma once
/// Kernels that read and compare the clocks of GPUs and host.

#include <cstdint>

#include "base/cuda_names.h"
#include "trace/gpu/clock_alignment.h"

namespace tandem::cuda {

/// A message: the sender's time, in two packets with the number of the exchange.
struct alignas(16) Mail {
  std::uint64_t packets[2];
};

/// The host's questions to a GPU, in pinned memory.
struct HostMail {
  volatile std::uint32_t question;  ///< number, written by the host
  alignas(64) volatile std::uint32_t answer;
  volatile std::uint64_t time;  ///< valid once `answer` equals the question's number
};

/// Runs `rounds` exchanges between two GPUs and writes them to `exchanges` (memory that the pinging GPU can write).
/// Both sides are launched before either is waited for. `before` is the largest number that either mailbox has held.
/// Each side stops after a second without an answer; the last exchanges then have received = 0.
void launch_ping(cudaStream_t stream, Mail* own, Mail* peers, trace::Exchange* exchanges, int rounds,
                 std::uint32_t before);
void launch_pong(cudaStream_t stream, Mail* own, Mail* peers, int rounds, std::uint32_t before);
/// Answers the host's questions before + 1, ... with the GPU's time.
void launch_answers(cudaStream_t stream, HostMail* mail, int rounds, std::uint32_t before);
/// Loads all of them on the current device.
void load_clock_kernels();

}  // namespace tandem::cuda
