#pragma once
/// Checks of a matrix product, element by element, against a reference accumulated in f64.

#include <vector>

#include "gemm/host/host_gemm.h"
#include "tandem/advanced/gemm.h"

namespace tandem {

/// The result of a check.
///
/// The error of an element c of the product is
///
///   |c - r| / max(|r|, |a| |b| / sqrt(k), s)
///
/// Here r is the reference, and s is the output type's least normal number. The Euclidean norms of its row of A and its
/// column of B are |a| and |b|. The typical size of r for terms of random sign is |a| |b| / sqrt(k). So the error is
/// the relative one, but does not explode where r is small by cancellation.
///
/// It bounds the error of arithmetic. A sum of k products with relative errors below g is off by at most g sum |a_i
/// b_i| <= g |a| |b| (Cauchy-Schwarz). That is g sqrt(k) in this measure, and rounding to the output type adds its
/// rounding unit. A missing term adds about 1 / sqrt(k).
///
/// An element that equals r rounded to the output type is right, also if that is a saturated value or infinity. If r is
/// NaN, only NaN is right. Any other disagreement with NaN or infinity has infinite error.
struct Mismatch {
  Size checked = 0;
  /// Elements with an error above the tolerance.
  Size wrong = 0;
  double max_rel_error = 0;
  /// The first wrong element in row-major order, or -1.
  Size row = -1, column = -1;
  double found = 0, expected = 0;
};

/// Returns the relative error of rounding to nearest in `type`, which is 2^-p for p bits of precision. For f64 it is
/// that of f32, the type of the host GEMM's results. Throws InvalidArgument for integers.
double rounding_unit(DType type);

/// Returns the error that a right product of depth k may have. It is `roundings` times the rounding unit of `out_type`,
/// plus the error of f32 accumulation in runs of 256. `roundings` is 1 if only the result is rounded, and more if
/// partial sums travel in that type.
double gemm_tolerance(DType out_type, Size k, int roundings = 1);

/// Returns the error that fast accumulation (Gemm::fast_accumulation) may add to it for random values. 22-bit
/// accumulators keep 13 bits behind the first, and drop the others at each 32 products. The greatest partial sum has at
/// most twice the typical size.
double fast_accumulation_tolerance(Size k);

/// The epilogue of a product: activation(product * row scale * column scale + bias). Lists have one value for each row
/// or column of the product, or are empty: scale 1, and no bias.
struct EpilogueValues {
  std::vector<float> row_scales, column_scales, bias;
  Activation activation = Activation::kNone;
};

/// Compares C (m x columns_after(activation, n), of `out_type`) with A * B (of `type`; layouts as in host_gemm.h)
/// computed in f64, on all processors. The error is measured before the activation, whose slope is at most 1.13, and
/// for gated ones against the product of both magnitudes. The answer does not depend on the number of processors.
/// Throws the errors of `host_gemm_tile`.
Mismatch check_gemm(const void* a, Size lda, const void* b, Size ldb, BLayout layout, const void* c, Size ldc, Size m,
                    Size n, Size k, DType type, DType out_type, double tolerance, const EpilogueValues& epilogue = {});

}  // namespace tandem
