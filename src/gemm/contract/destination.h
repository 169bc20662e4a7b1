#pragma once
/// Checks of a GEMM's destination against its other fields.

#include "tandem/advanced/gemm.h"

namespace tandem {

/// Throws InvalidArgument if the GEMM's rows or its order do not suit its destination.
void check_destination(const Gemm& gemm);

}  // namespace tandem
