#pragma once
/// Kernels that measure a machine: one thread's latencies, and bandwidth by blocks.

#include <cuda_runtime.h>

#include <cstdint>

#include "tandem/range.h"

namespace tandem::cuda {

/// Threads of a block of the bandwidth kernels.
inline constexpr int kProbeThreads = 1024;

/// One side of a ping-pong of `rounds` rounds: this side writes to `theirs`, the other one to `mine`, both zero before.
/// The first to write is the side with `begins`. `ordered`: release and acquire, as signals have them; else a packet
/// that is its own flag. Gives up after two seconds. `*ns`: what the rounds took, or 0 where it gave up.
void launch_ping_pong(cudaStream_t stream, std::uint64_t* mine, std::uint64_t* theirs, int rounds, bool begins,
                      bool ordered, std::uint64_t* ns);
/// The same between two blocks of one GPU; `words`: 32 of them, zero before.
void launch_local_ping_pong(cudaStream_t stream, std::uint64_t* words, int rounds, std::uint64_t* ns);
/// One thread's dependent loads: each word of `chain` holds the index of the next one.
void launch_chase(cudaStream_t stream, const std::uint64_t* chain, int steps, std::uint64_t* ns);
/// Reads `from` (null: writes registers' contents) and writes `to` (null: reads only) with `blocks` blocks, four
/// accesses of 16 bytes a thread in flight. `bytes`: a multiple of 64 KiB.
void launch_stream(cudaStream_t stream, int blocks, void* to, const void* from, Size bytes);
/// Does nothing.
void launch_empty(cudaStream_t stream, bool early);

/// Loads all on the current device.
void load_probe_kernels();

}  // namespace tandem::cuda
