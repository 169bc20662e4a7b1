#pragma once
/// The times of GEMMs whose order of tiles follows the chunks of communication.

#include "tandem/machine.h"

namespace tandem {

/// Returns how often a GEMM reads B from memory more than a whole one does, if it computes `chunks` groups of rows one
/// after the other. B comes from memory once for each group, unless the cache holds it. Whole GEMMs read it once for
/// each 1024 rows (8 panels), which the sustained rates contain.
Size gemm_passes_over_b(const GemmShape& problem, Size chunks);

/// Does the same as gemm_tile_times of tandem/machine.h, for so many passes.
GemmTileTimes gemm_tile_times(const Machine& machine, int tile_m, int tile_n, const GemmShape& problem, int sms,
                              Size passes_over_b);

}  // namespace tandem
