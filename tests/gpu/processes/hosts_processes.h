#pragma once
/// The part "processes" of hosts_gpu_check: each process is a host with one GPU, and libfabric joins them.

#include <span>
#include <string>
#include <vector>

#include "gpu/graph.h"
#include "support/collective_rounds.h"
#include "support/operator_rounds.h"
#include "tandem/cuda.h"

namespace tandem::test {

/// Starts this program once for each GPU, as a host of its own, and counts the checks that fail in any process. Without
/// names all parts run.
void check_processes(int hosts, const std::vector<std::string>& parts);

/// One such process: runs the checks of a world on PE `pe`, and prints the time of calls. Returns an exit code.
int run_host(std::span<char* const> words);

/// Returns cases of several types and sizes: none, one, odd, one past a piece of a message. Data changes from round to
/// round, also in replayed graphs.
std::vector<RoundsCase> cases_between_nodes(const AlgorithmInfo& algorithm, int pes);

/// Returns the algorithms that run between nodes of so many PEs.
std::vector<AlgorithmInfo> algorithms_between_nodes(int pes);

/// Every PE copies to the next one and signals, by calls of a stream. `replays`: they are captured once. Returns the
/// number of wrong words.
Size stream_rounds(World& world, bool replays);

/// Returns the cases of operators between nodes.
std::vector<OperatorCase> operators_between_nodes(int pes);
/// Runs one of them on a PE. Returns the number of wrong elements.
Size run_operator_case(World& world, Stream& stream, const OperatorMemory& memory, const OperatorCase& c);

}  // namespace tandem::test
