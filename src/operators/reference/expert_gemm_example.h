#pragma once
/// Weights of experts with two elements in each row, so that every product of small integers is exact and soon known.

#include "gemm/contract/activation.h"
#include "tandem/layer/expert_gemms.h"

namespace tandem::ops {

/// A row of a matrix: one element is 1 or -1, the other one 2. They are added where both have the same place.
struct SparseRow {
  Size first;
  float sign;
  Size second;

  template <class At>
  float times(const At& at) const {
    return sign * at(first) + 2 * at(second);
  }
};

/// The weights of all experts.
struct ExpertWeights {
  const ExpertGemmOptions& options;

  /// Row `n` of an expert's first matrix: a gate, an up or, without a gated activation, any column.
  SparseRow first(int expert, Size n, bool is_up = false) const {
    const Size k = options.experts.hidden;
    return {(n * 5 + expert * 3 + (is_up ? 2 : 0)) % k, (n + expert) % 2 == 0 ? 1.0F : -1.0F, (n * 7 + expert + 1) % k};
  }
  SparseRow second(int expert, Size n) const {
    const Size k = options.intermediate;
    return {(n * 3 + expert) % k, (n + expert) % 3 == 0 ? -1.0F : 1.0F, (n * 11 + expert * 5 + 2) % k};
  }

  /// Element `j` of the result of the first product. `x` returns an element of a token's row.
  template <class X>
  float intermediate(int expert, Size j, const X& x) const {
    const Activation activation = options.activation;
    if (!is_gated(activation)) return activate(activation, first(expert, j).times(x));
    const float gate = first(expert, j).times(x);
    const float up = first(expert, j, true).times(x);
    return gated(activation, gate, up);
  }
  /// Row of the first matrix that holds row `j`, in the order of interleave_gates.
  Size row_of(Size j, bool is_up) const {
    if (!is_gated(options.activation)) return j;
    return column_of_gate(j) + (is_up ? kGateGroup : 0);
  }
};

}  // namespace tandem::ops
