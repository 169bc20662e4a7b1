#pragma once
/// The subcommands. Each returns the exit code; errors are thrown.

#include <string>
#include <variant>

#include "tandem/collectives.h"
#include "tandem/operators.h"
#include "tools/tandem/options/parse.h"

namespace tandem::cli {

inline constexpr int kRight = 0;
inline constexpr int kWrong = 1;    ///< a wrong result or a violated check
inline constexpr int kUsage = 2;    ///< invalid usage
inline constexpr int kFailure = 3;  ///< the run itself failed

int execute(const ListOptions&);
int execute(const MachinesOptions&);
int execute(const RunOptions&);
int execute(const BenchOptions&);
int execute(const CheckArguments&);
int execute(const TuneOptions&);
int execute(const DoctorOptions&);
int execute(const CalibrateOptions&);

/// all_reduce_norm, which is a collective with options of its own.
struct NormSubject {};
/// dispatch or combine, likewise.
struct ExpertsSubject {
  bool combines = false;
};

/// The collective or operator that OP names. The parser throws InvalidArgument, with all names, if it is neither.
using Subject = std::variant<Collective, Operator, NormSubject, ExpertsSubject>;
Subject parse_subject(const std::string& text);
/// Throws InvalidArgument if --vs names a peer that collectives do not have.
void check_peer(const Subject& subject, const Arguments&);

}  // namespace tandem::cli
