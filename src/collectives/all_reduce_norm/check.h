#pragma once
/// Checks of the options and arguments of all_reduce_norm.

#include "tandem/layer/all_reduce_norm.h"

namespace tandem::kernels {

/// Throws InvalidArgument with the option's name, its value and the values allowed.
void check(const AllReduceNormOptions& options);
/// The same for the blocks of a plan, of which the algorithm allows `most`.
void check_blocks(const AllReduceNormOptions& options, int most);

/// Throws InvalidArgument for a call that does not match the options, with the name of the argument.
void check(const AllReduceNormOptions& options, const World& world, const AllReduceNormCall& call, bool two_shots);

/// Returns the rows of residual and sum of a call.
Size held_rows(const AllReduceNormOptions& options, const Team& team, Size rows);
/// Returns the scales of a row: none, one, or one for each group.
Size scales_of_row(const AllReduceNormOptions& options);

}  // namespace tandem::kernels
