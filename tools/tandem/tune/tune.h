#pragma once
/// Results of `tandem tune`.

#include <string>
#include <vector>

#include "tandem/advanced/operator_tuning.h"
#include "tools/tandem/options/arguments.h"
#include "tune/sweep.h"

namespace tandem::cli {

/// The sweep of one collective.
struct Sweep {
  std::string machine;  ///< see World::machine().name
  Processor processor = Processor::kGpu;
  tune::Group group;  ///< without sizes
  std::vector<tune::Measured> measured;
};

/// The trials of an operator.
struct OperatorTuneSetup {
  TuneSetup setup;
  bool speaks = true;  ///< this process has PE 0: it prints and writes
};

/// Returns the source of a sweep: "tandem tune ...; 2026-11-21; NVIDIA H200 x2".
std::string sweep_source(const std::string& command_line, const std::string& machine);

/// Prints a line for people: the size, and the fastest candidates.
void print_sweep_line(const Arguments& arguments, const std::string& op, Size bytes, std::vector<tune::Measured> all);

/// The file of tune's --out: a selection table for collectives, a cache for operators.
enum class TuneOutput { kSelection, kOperatorCache };
/// Throws InvalidArgument if the file exists and is of the other kind, since writing would replace it.
void check_output_kind(const std::string& file, TuneOutput wanted);

}  // namespace tandem::cli
