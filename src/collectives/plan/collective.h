#pragma once
/// The registry of collectives: the properties of each algorithm, and the factory of its plans.

#include <memory>
#include <span>
#include <string>

#include "tandem/collectives.h"

namespace tandem::kernels {

struct Algorithm {
  AlgorithmInfo info;
  /// `options` are checked, and `options.algorithm` is this algorithm's name.
  std::unique_ptr<CollectivePlan> (*make)(World& world, const CollectiveOptions& options, const Team& team);
  /// Returns why the algorithm cannot run on this machine or with these options, beyond `info` (no multicast, narrow
  /// blocks), or "". The text ends the error of `refuse`. Null: no restriction.
  std::string (*unfit)(const Machine& machine, const CollectiveOptions& options) = nullptr;
};

// Each collective's algorithms, first the default on one node where no table has an entry; in the collective's .cpp.
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

/// Returns the algorithms of one collective.
std::span<const Algorithm> algorithms_of(Collective collective);
/// Returns the algorithm of that name, or null.
const Algorithm* find_algorithm(Collective collective, const std::string& algorithm);
/// Does the same, but throws InvalidArgument with the names of all algorithms.
const Algorithm& algorithm_named(Collective collective, const std::string& algorithm);

/// Returns the algorithm for wire formats of 8 bits, or null for a collective that has none.
const Algorithm* quantised_algorithm(Collective collective);
/// Throws InvalidArgument for options that do not go with a wire format of 8 bits.
void check_wire(Collective collective, const CollectiveOptions& options);
/// Returns the algorithm of that name for the wire format.
inline const Algorithm& algorithm_for(Collective collective, WireFormat wire, const std::string& algorithm) {
  return wire == WireFormat::kType ? algorithm_named(collective, algorithm) : *quantised_algorithm(collective);
}

/// Returns whether the algorithm runs on the team's nodes.
bool can_run(const Algorithm& algorithm, const Team& team);
/// Returns why the algorithm cannot run, beyond the team's nodes, or "".
std::string why_unfit(const Algorithm& algorithm, const Machine& machine, const CollectiveOptions& options);

/// Throws Unsupported "all_reduce algorithm 'multimem' <why>" for an algorithm that this machine or team cannot run.
[[noreturn]] void refuse(const AlgorithmInfo& info, const std::string& why);

/// Throws InvalidArgument for a count that is negative or above `max_count`. It also throws for a buffer that is
/// missing, or that does not start at a multiple of `alignment` bytes.
void check_call(const std::string& collective_and_algorithm, Symm<const std::byte> in, Symm<std::byte> out, Size count,
                Size max_count, std::size_t alignment = 1);

/// Returns the default number of blocks for `bytes` bytes of a PE's larger buffer; see choose.cpp.
int default_blocks(Size bytes, const Team& team);

}  // namespace tandem::kernels
