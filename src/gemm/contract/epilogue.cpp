#include "gemm/contract/epilogue.h"

#include <fmt/format.h>

#include <vector>

#include "gemm/contract/scales.h"
#include "tandem/error.h"

namespace tandem {

void check_epilogue(const Gemm& gemm) {
  if (gemm.activation < Activation::kNone || gemm.activation > Activation::kGeGlu)
    throw InvalidArgument("gemm: activation is not one of the enumeration's");
  const GemmDestination& to = gemm.destination;
  const bool added_elsewhere = to.scatter() != nullptr || to.broadcast() != nullptr;
  if (added_elsewhere && gemm.activation != Activation::kNone)
    throw InvalidArgument("gemm: activation is set, allowed: none where tiles are partial sums");
  constexpr Size kPairs = 2 * kGateGroup;
  if (is_gated(gemm.activation) && to.is_partial())
    throw InvalidArgument("gemm: activation is gated, allowed: one of single columns where tiles are partial sums");
  if (is_gated(gemm.activation) && (gemm.n % kPairs != 0 || gemm.tile_n % kPairs != 0))
    throw InvalidArgument(fmt::format("gemm: n is {} and tile_n {}, allowed with a gated activation: multiples of {}",
                                      gemm.n, gemm.tile_n, kPairs));
  if (to.sum() != nullptr && to.sum()->norm.weight != nullptr && gemm.activation != Activation::kNone)
    throw InvalidArgument("gemm: activation is set, allowed: none before a norm");
  if (to.is_partial() && gemm.scales.c != nullptr)
    throw InvalidArgument("gemm: scales.c is set, allowed: none where tiles are partial sums");
  check_scales(gemm);
}

DType bias_type(const Gemm& gemm) { return size_of(gemm.out_type) == 1 ? DType::kBF16 : gemm.out_type; }

namespace {

/// Replaces the pairs of a row by their activation. No value is overwritten before it is read.
void gate_pairs(Activation activation, const float* sums, Size columns, float of_c, float* to) {
  for (Size col = 0; col < columns; ++col) {
    const Size gate = column_of_gate(col);
    to[col] = gated(activation, sums[gate], sums[gate + kGateGroup]) * of_c;
  }
}

}  // namespace

void apply_epilogue(const Gemm& gemm, Range rows, Range cols, float* sums, int group) {
  const GemmScales& scales = gemm.scales;
  const Size columns = cols.size();
  std::vector<float> bias(static_cast<std::size_t>(columns));
  if (gemm.bias != nullptr)
    dispatch(bias_type(gemm), [&]<class T>() {
      for (Size col = 0; col < columns; ++col)
        bias[static_cast<std::size_t>(col)] = convert<float>(static_cast<const T*>(gemm.bias)[cols.begin + col]);
    });
  const Activation activation = gemm.destination.is_partial() ? Activation::kNone : gemm.activation;
  const float* const all_of_a = scales.blocks ? nullptr : scales.a;
  const float* const all_of_b =
      scales.blocks || scales.b == nullptr ? nullptr : scales.b + group * (scales.b_per_column ? gemm.n : 1);
  const float of_c = scales.c != nullptr ? *scales.c : 1;
  for (Size row = 0; row < rows.size(); ++row) {
    const Size of_row = scales.a_per_row ? max(row_of_scales(gemm, rows.begin + row), 0) : 0;
    const float of_a = all_of_a != nullptr ? all_of_a[of_row] : 1;
    for (Size col = 0; col < columns; ++col) {
      const float of_b = all_of_b != nullptr ? all_of_b[scales.b_per_column ? cols.begin + col : 0] : 1;
      float& sum = sums[row * columns + col];
      sum = sum * (of_a * of_b) + bias[static_cast<std::size_t>(col)];
      if (!is_gated(activation)) sum = activate(activation, sum) * of_c;
    }
    if (is_gated(activation))
      gate_pairs(activation, sums + row * columns, columns / 2, of_c, sums + row * (columns / 2));
  }
}

}  // namespace tandem
