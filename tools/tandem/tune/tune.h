#pragma once
/// `tandem tune`: what a sweep found out.

#include <string>
#include <vector>

#include "tandem/advanced/operator_tuning.h"
#include "tools/tandem/options/arguments.h"
#include "tune/sweep.h"

namespace tandem::cli {

/// The sweep of one collective.
struct Sweep {
  std::string machine;  ///< as World::machine().name
  tune::Group group;    ///< its sizes still empty
  std::vector<tune::Measured> measured;
};

/// How an operator is tried.
struct OperatorTuneSetup {
  TuneSetup setup;
  bool speaks = true;  ///< this process has PE 0: it prints and writes
};

/// "tandem tune ...; 2026-11-21; NVIDIA H200 x2": where a sweep comes from.
std::string sweep_source(const Arguments& arguments, const std::string& machine);

/// A line for people: the size, and the quickest candidates.
void print_sweep_line(const Arguments& arguments, Collective collective, Size bytes, std::vector<tune::Measured> all);

/// What --out of tune names: of collectives a selection table, of operators their cache.
enum class TuneOutput { kSelection, kOperatorCache };
/// Throws InvalidArgument where the file is there and is the other one, which writing would displace.
void check_output_kind(const std::string& file, TuneOutput wanted);

}  // namespace tandem::cli
