#pragma once
/// Checks of an operator's options and of a run's arguments. They throw InvalidArgument, which names the option, the
/// given value and the allowed ones.

#include <string>

#include "tandem/operators.h"

namespace tandem::ops {

/// The most chunks of a shard (OperatorOptions::splits).
inline constexpr int kMostSplits = 8;

/// Throws InvalidArgument unless `holds`.
void require(bool holds, const char* option, Size given, const std::string& allowed);
void check(Operator op, const OperatorOptions& options, const World& world);
void check(Operator op, const OperatorOptions& options, const OperatorCall& call);
/// Returns the scales of a row of C that is quantised behind its sums: none, one, or one for each group.
Size scales_of_row(const OperatorOptions& options);
/// Returns the form in which the norm of all_gather_gemm leaves A. That of fp8 has the scales that the options
/// announce.
Quantisation quantisation_of_a(Operator op, const OperatorOptions& options);
/// Returns the type of a call's A.
DType given_a_type(Operator op, const OperatorOptions& options);

/// Requires each matrix of which this PE has elements, and that it starts at a multiple of `alignment` bytes.
void check_matrices(Operator op, const OperatorOptions& options, const Team& team, const OperatorCall& call,
                    Size alignment);
/// Requires that a matrix that lies in a buffer of the heap fits into it, and that no C overlaps another matrix of the
/// run. A GEMM stores sums while others are not computed yet.
void check_places(const World& world, Operator op, const OperatorOptions& options, const Team& team,
                  const OperatorCall& call);

}  // namespace tandem::ops
