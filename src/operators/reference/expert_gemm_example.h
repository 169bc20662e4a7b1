#pragma once
/// Weights of experts with two elements in each row, so that every product of small integers is exact and soon known.

#include <algorithm>
#include <cmath>
#include <vector>

#include "gemm/contract/activation.h"
#include "operators/experts/grouped_product.h"

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

/// A token's row between both products of an expert, as memory holds it.
struct MiddleRow {
  std::vector<float> values;
  std::vector<float> scales;  ///< of fp8 values
};

/// The weights of all experts.
struct ExpertWeights {
  const ExpertGemmOptions& options;

  /// Returns the number of the part of an expert that PE `pe` holds. The functions below take it as their expert, so
  /// parts have different weights.
  int part(int expert, int pe) const { return expert * options.experts.tp_size + pe % options.experts.tp_size; }

  /// The scale of the weights of a block: a power of two, so that products stay exact.
  float scale(int expert, Size block, Size step) const {
    return is_fp8(options) ? std::ldexp(1.0F, static_cast<int>((expert + block + step) % 3) - 1) : 1.0F;
  }

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
    const bool has_ups = is_gated(activation);
    const auto product = [&](bool is_up) {
      const Size block = j / kScaleBlock * (has_ups ? 2 : 1) + (is_up ? 1 : 0);
      return first(expert, j, is_up).times([&](Size i) { return x(i) * scale(expert, block, i / kScaleBlock); });
    };
    return has_ups ? gated(activation, product(false), product(true)) : activate(activation, product(false));
  }

  /// The result of the first product in the type T.
  template <class T, class X>
  MiddleRow middle_row(int expert, const X& x) const {
    MiddleRow row;
    for (Size j = 0; j < options.intermediate; ++j) row.values.push_back(intermediate(expert, j, x));
    if (is_fp8(options)) quantise(row);
    for (float& value : row.values) value = convert<float>(convert<T>(value));
    return row;
  }

  /// Element `n` of the result of the second product: blocks in the order of k, and within a block exact.
  float result(int expert, Size n, const MiddleRow& row) const {
    const SparseRow weights = second(expert, n);
    const auto at = [&](Size i) { return row.values[static_cast<std::size_t>(i)]; };
    if (!is_fp8(options)) return weights.times(at);
    const Size steps[] = {std::min(weights.first, weights.second) / kScaleBlock,
                          std::max(weights.first, weights.second) / kScaleBlock};
    float sum = 0;
    for (int i = 0; i < (steps[0] == steps[1] ? 1 : 2); ++i) {
      const float product = weights.times([&](Size k) { return k / kScaleBlock == steps[i] ? at(k) : 0; });
      sum = std::fma(product, row.scales[static_cast<std::size_t>(steps[i])] * scale(expert, n / kScaleBlock, steps[i]),
                     sum);
    }
    return sum;
  }
  /// Row of the first matrix that holds row `j`, in the order of interleave_gates.
  Size row_of(Size j, bool is_up) const {
    if (!is_gated(options.activation)) return j;
    return column_of_gate(j) + (is_up ? kGateGroup : 0);
  }

 private:
  static void quantise(MiddleRow& row) {
    for (std::size_t begin = 0; begin < row.values.size(); begin += kScaleBlock) {
      const std::size_t end = std::min(begin + kScaleBlock, row.values.size());
      float greatest = 0;
      for (std::size_t i = begin; i < end; ++i) greatest = std::max(greatest, std::abs(row.values[i]));
      row.scales.push_back(scale_of_block(greatest));
      for (std::size_t i = begin; i < end; ++i) row.values[i] *= 1 / row.scales.back();
    }
  }
};

}  // namespace tandem::ops
