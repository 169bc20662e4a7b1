#pragma once
/// Matrices as TMA reads and writes them.

#include <cuda.h>

#include "tandem/numeric.h"

namespace tandem::cuda {

/// A row-major matrix (`rows` x `cols` of `type`, rows of a multiple of 16 bytes, at a multiple of 16) in boxes of
/// `box_rows` x `box_cols`. A box's rows take 32, 64 or 128 bytes, swizzled in shared memory at that width, or more, as
/// they are. What lies beyond the matrix is read as zeros and not written. Throws RuntimeFailure if the driver refuses.
CUtensorMap tensor_map(const void* data, DType type, Size rows, Size cols, int box_rows, int box_cols);

}  // namespace tandem::cuda
