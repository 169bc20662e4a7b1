#pragma once
/// Kernels that measure a machine: one thread's latencies, and bandwidth by blocks.

#include <cstdint>

#include "base/cuda_names.h"
#include "tandem/range.h"

namespace tandem::cuda {

/// Threads of a block of the bandwidth kernels.
inline constexpr int kProbeThreads = 1024;

/// One side of a ping-pong of `rounds` rounds. This side writes to `theirs`, the other one to `mine`; both are zero
/// before. The side with `begins` writes first. `ordered` uses release and acquire like signals; otherwise the word is
/// a packet with its own flag. It stops after two seconds. `*ns` is the time of the rounds, or 0 after a stop.
void launch_ping_pong(cudaStream_t stream, std::uint64_t* mine, std::uint64_t* theirs, int rounds, bool begins,
                      bool ordered, std::uint64_t* ns);
/// Does the same between two blocks of one GPU. `words` are 32 words, zero before.
void launch_local_ping_pong(cudaStream_t stream, std::uint64_t* words, int rounds, std::uint64_t* ns);
/// One thread's dependent loads: each word of `chain` holds the index of the next one.
void launch_chase(cudaStream_t stream, const std::uint64_t* chain, int steps, std::uint64_t* ns);
/// Reads `from` (null: writes registers' contents) and writes `to` (null: reads only) with `blocks` blocks. Each thread
/// has four accesses of 16 bytes in flight. `bytes` is a multiple of 64 KiB.
void launch_stream(cudaStream_t stream, int blocks, void* to, const void* from, Size bytes);
/// Does nothing.
void launch_empty(cudaStream_t stream, bool early);

/// Loads all of them on the current device.
void load_probe_kernels();

}  // namespace tandem::cuda
