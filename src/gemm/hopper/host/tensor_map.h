#pragma once
/// Matrices in the form in which TMA reads and writes them.

#include "base/cuda_names.h"
#include "tandem/numeric.h"

namespace tandem::cuda {

/// Describes a row-major matrix (`rows` x `cols` of `type`) in boxes of `box_rows` x `box_cols`. Its address and row
/// length are multiples of 16 bytes. A box's rows take 32, 64 or 128 bytes, swizzled in shared memory at that width;
/// longer rows are not swizzled. Elements beyond the matrix are read as zeros and not written. The L2 cache fetches
/// `promotion` at a time. Throws RuntimeFailure if the driver refuses.
CUtensorMap tensor_map(const void* data, DType type, Size rows, Size cols, int box_rows, int box_cols,
                       CUtensorMapL2promotion promotion = CU_TENSOR_MAP_L2_PROMOTION_L2_128B);

}  // namespace tandem::cuda
