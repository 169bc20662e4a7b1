#pragma once
/// Matrix products on the host, for tiles of the simulator's GEMM and for the checker's references.

#include "tandem/advanced/gemm.h"

namespace tandem {

/// C (m x n, row-major, f32, overwritten) = A (m x k, row-major) * B, with A and B of `type`: a floating-point type.
/// `ldb` is the number of elements between the rows of B in memory.
///
/// An element's bits depend on its row of A and its column of B. They do not depend on its place in the tile or on m
/// and n. Its k products are summed in runs of 256, counted from k = 0. Each run is one chain of multiply-adds from
/// zero in order, and the runs are added in order. Every division of a problem into tiles thus gives the same bits.
/// (The processor does matter: multiply-adds are fused if it has AVX2 and FMA.)
///
/// Accumulation is in f32; for f64 factors in f64, rounded to f32 at the end. Leading dimensions are in elements.
/// Throws InvalidArgument for integer types, negative sizes and leading dimensions shorter than a row.
void host_gemm_tile(const void* a, Size lda, const void* b, Size ldb, float* c, Size ldc, Size m, Size n, Size k,
                    DType type, BLayout layout = BLayout::kNxK);

/// Does the same with accumulation and result in f64.
void host_gemm_tile_f64(const void* a, Size lda, const void* b, Size ldb, double* c, Size ldc, Size m, Size n, Size k,
                        DType type, BLayout layout = BLayout::kNxK);

}  // namespace tandem
