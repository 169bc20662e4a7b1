#pragma once
/// The registry of collectives: what each algorithm is, and how its plan is made.

#include <memory>
#include <span>
#include <string>

#include "tandem/collectives.h"

namespace tandem::kernels {

struct Algorithm {
  AlgorithmInfo info;
  /// The options are checked and `options.algorithm` is this algorithm's name.
  std::unique_ptr<CollectivePlan> (*make)(World& world, const CollectiveOptions& options, const Team& team);
  /// What `info` does not say: why this machine or these options are not for it (no multicast, narrow blocks), as the
  /// end of what `refuse` throws; empty where they are. None: it takes all.
  std::string (*unfit)(const Machine& machine, const CollectiveOptions& options) = nullptr;
};

// Each collective's algorithms, the default for one node first; defined in the collective's own .cpp.
std::span<const Algorithm> all_reduce_algorithms();
std::span<const Algorithm> all_gather_algorithms();
std::span<const Algorithm> reduce_scatter_algorithms();
std::span<const Algorithm> all_to_all_algorithms();
std::span<const Algorithm> broadcast_algorithms();
std::span<const Algorithm> reduce_algorithms();
std::span<const Algorithm> gather_algorithms();
std::span<const Algorithm> scatter_algorithms();
std::span<const Algorithm> send_recv_algorithms();
std::span<const Algorithm> exchange_algorithms();

/// Those of one collective.
std::span<const Algorithm> algorithms_of(Collective collective);

/// Refuses by name an algorithm that this machine or team cannot run: throws Unsupported
/// "all_reduce algorithm 'multimem' <why>".
[[noreturn]] void refuse(const AlgorithmInfo& info, const std::string& why);

/// Throws InvalidArgument for a count that is negative or above `max_count`, and for a buffer that is none
/// or does not begin at a multiple of `alignment` bytes.
void check_call(const std::string& collective_and_algorithm, Symm<const std::byte> in, Symm<std::byte> out, Size count,
                Size max_count, std::size_t alignment = 1);

/// Blocks that suit `bytes` bytes of a PE's larger buffer: see the table in collective.cpp.
int default_blocks(Size bytes, const Team& team);

}  // namespace tandem::kernels
