#pragma once
/// Whether an operator's options, and what a run is given, are allowed: else InvalidArgument, which names the option,
/// what was given and what is allowed.

#include "tandem/operators.h"

namespace tandem::ops {

void check(Operator op, const OperatorOptions& options, const World& world);
void check(const OperatorOptions& options, const OperatorCall& call);
/// That no matrix is missing of which this PE has elements, and that each begins at a multiple of `alignment` bytes.
void check_matrices(Operator op, const OperatorOptions& options, const Team& team, const OperatorCall& call,
                    Size alignment);
/// That each matrix fits into the heap's buffer in which it lies, if it lies in one, and that no C overlaps another
/// matrix of the run: sums of a GEMM are stored while others are not computed yet.
void check_places(const World& world, Operator op, const OperatorOptions& options, const Team& team,
                  const OperatorCall& call);

}  // namespace tandem::ops
