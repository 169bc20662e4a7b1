#pragma once
/// The collectives and operators that are run on CPUs, and how one PE runs them.

#include <atomic>
#include <functional>
#include <string>
#include <vector>

#include "support/collective_rounds.h"
#include "support/operator_rounds.h"
#include "tandem/worlds.h"

namespace tandem::test {

/// A world on CPUs with a small heap.
WorldOptions host_options(Size heap_bytes = Size{64} << 20);

/// Every pair of algorithm, type, operation, count, in place, data and blocks. Counts: none, one, odd ones, one more
/// than a chunk. `whole`: all of these cases, else a quarter, another one on other numbers of PEs.
std::vector<RoundsCase> collective_cases(int pes, bool whole);

/// Every algorithm once, with one element more than a message between hosts takes of 16 bits.
std::vector<RoundsCase> large_cases(int pes);

/// Returns the cases whose algorithms run between nodes.
std::vector<RoundsCase> between_nodes(std::vector<RoundsCase> cases);

/// Every form, mover, direction, reduction and order of tiles of the operators, some of each.
std::vector<OperatorCase> operator_cases(int pes);

/// This PE's part. The texts name cases that were wrong.
std::vector<std::string> run_collectives(World& world, const std::vector<RoundsCase>& cases);
std::vector<std::string> run_operators(World& world, const std::vector<OperatorCase>& cases);
/// Hundreds of calls of experts, whose bits do not change although PEs are late.
std::vector<std::string> run_expert_stress(World& world);

/// Runs a program on the PEs of a world of threads. Returns the texts that it returns.
std::vector<std::string> answers_of_threads(int pes, const std::function<std::vector<std::string>(World&)>& run);

}  // namespace tandem::test
