#pragma once
/// Matrix products on the host: what a tile of the simulator's GEMM computes, and what the checker compares with.

#include "tandem/advanced/gemm.h"

namespace tandem {

/// C (m x n, row-major, f32, overwritten) = A (m x k, row-major) * B, with A and B of `type`: a floating-point type.
/// `ldb` counts elements between the rows of B as they lie in memory.
///
/// An element's bits depend on its row of A and its column of B alone, not on where it lies in the tile or on m and n:
/// its k products are always summed in runs of 256, counted from k = 0, each run in order from zero by one chain of
/// multiply-adds, and the runs are added in order. So every cut of a problem into tiles gives the same bits. (The
/// processor does matter: multiply-adds are fused where it has AVX2 and FMA.)
///
/// Accumulation is in f32; for f64 factors in f64, rounded to f32 at the end. Leading dimensions are in elements.
/// Throws InvalidArgument for integer types, negative sizes and leading dimensions shorter than a row.
void host_gemm_tile(const void* a, Size lda, const void* b, Size ldb, float* c, Size ldc, Size m, Size n, Size k,
                    DType type, BLayout layout = BLayout::kNxK);

/// The same with accumulation and result in f64.
void host_gemm_tile_f64(const void* a, Size lda, const void* b, Size ldb, double* c, Size ldc, Size m, Size n, Size k,
                        DType type, BLayout layout = BLayout::kNxK);

}  // namespace tandem
