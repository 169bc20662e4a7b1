#include "gemm/contract/epilogue.h"

#include <vector>

#include "tandem/error.h"

namespace tandem {

void check_epilogue(const Gemm& gemm) {
  if (gemm.activation < Activation::kNone || gemm.activation > Activation::kSilu)
    throw InvalidArgument("gemm: activation is not one of the enumeration's");
  const bool added_elsewhere = gemm.c_at_collector || gemm.c_at_all;
  if (added_elsewhere && gemm.activation != Activation::kNone)
    throw InvalidArgument("gemm: activation is set, allowed: none where tiles are partial sums");
  const bool partial = added_elsewhere || gemm.ring.received != nullptr || gemm.sum.calls != nullptr;
  if (partial && gemm.scales.c != nullptr)
    throw InvalidArgument("gemm: scales.c is set, allowed: none where tiles are partial sums");
}

DType bias_type(const Gemm& gemm) { return size_of(gemm.out_type) == 1 ? DType::kBF16 : gemm.out_type; }

void apply_epilogue(const Gemm& gemm, Range rows, Range cols, float* sums) {
  const GemmScales& scales = gemm.scales;
  const Size columns = cols.size();
  std::vector<float> bias(static_cast<std::size_t>(columns));
  if (gemm.bias != nullptr)
    dispatch(bias_type(gemm), [&]<class T>() {
      for (Size col = 0; col < columns; ++col)
        bias[static_cast<std::size_t>(col)] = convert<float>(static_cast<const T*>(gemm.bias)[cols.begin + col]);
    });
  const bool is_partial = gemm.ring.received != nullptr || gemm.sum.calls != nullptr;
  const Activation activation = is_partial ? Activation::kNone : gemm.activation;
  const float of_c = scales.c != nullptr ? *scales.c : 1;
  for (Size row = 0; row < rows.size(); ++row) {
    const float of_a = scales.a != nullptr ? scales.a[scales.a_per_row ? rows.begin + row : 0] : 1;
    for (Size col = 0; col < columns; ++col) {
      const float of_b = scales.b != nullptr ? scales.b[scales.b_per_column ? cols.begin + col : 0] : 1;
      float& sum = sums[row * columns + col];
      sum = activate(activation, sum * (of_a * of_b) + bias[static_cast<std::size_t>(col)]) * of_c;
    }
  }
}

}  // namespace tandem
