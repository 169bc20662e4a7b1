#pragma once
/// Whether a matrix product is right, element by element, against a reference accumulated in f64.

#include <vector>

#include "gemm/host/host_gemm.h"
#include "tandem/advanced/gemm.h"

namespace tandem {

/// What a check found.
///
/// The error of an element c of the product is
///
///   |c - r| / max(|r|, |a| |b| / sqrt(k), s)
///
/// with r the reference, |a| and |b| the Euclidean norms of its row of A and its column of B, s the output type's least
/// normal number. |a| |b| / sqrt(k) is the size that r typically has for terms of random sign; so the error is the
/// relative one, but does not explode where r is small by cancellation. It bounds what arithmetic may do: a sum of k
/// products with relative errors below g is off by at most g sum |a_i b_i| <= g |a| |b| (Cauchy-Schwarz), that is g
/// sqrt(k) in this measure, and rounding to the output type adds its rounding unit. A missing term adds about 1 /
/// sqrt(k).
///
/// An element that equals r rounded to the output type is right, also where that is a saturated value or infinity.
/// Where r is NaN only NaN is right; any other disagreement with NaN or infinity has infinite error.
struct Mismatch {
  Size checked = 0;
  /// Elements with an error above the tolerance.
  Size wrong = 0;
  double max_rel_error = 0;
  /// The first wrong element in row-major order; -1 where there is none.
  Size row = -1, column = -1;
  double found = 0, expected = 0;
};

/// Relative error of rounding to nearest in `type`: 2^-p for p bits of precision. f64 counts as f32, in which the
/// host's GEMM gives its results. Throws InvalidArgument for integers.
double rounding_unit(DType type);

/// The error that a right product of depth k may have: `roundings` times the rounding unit of `out_type` (1: the result
/// alone is rounded; more where partial sums travel in that type), plus what f32 accumulation does in runs of 256.
double gemm_tolerance(DType out_type, Size k, int roundings = 1);

/// What is done with a product before it is stored: activation(product * row scale * column scale + bias). Lists have
/// one value for each row or column, or are empty: 1, and no bias.
struct ProductFinish {
  std::vector<float> row_scales, column_scales, bias;
  Activation activation = Activation::kNone;
};

/// Compares C (m x n, of `out_type`) with A * B (of `type`; layouts as in host_gemm.h) computed in f64, on all
/// processors. The error is measured before the activation, whose slope is at most 1.13. The answer does not depend on
/// how many there are. Throws InvalidArgument as `host_gemm_tile` does.
Mismatch check_gemm(const void* a, Size lda, const void* b, Size ldb, BLayout layout, const void* c, Size ldc, Size m,
                    Size n, Size k, DType type, DType out_type, double tolerance, const ProductFinish& finish = {});

}  // namespace tandem
