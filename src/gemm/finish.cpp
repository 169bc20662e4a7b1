#include "gemm/finish.h"

#include <cmath>
#include <numbers>

#include "tandem/error.h"

namespace tandem {

void check_finish(const Gemm& gemm) {
  const bool partial = gemm.c_at_collector || gemm.chain.begun != nullptr;
  if (partial && gemm.bias != nullptr)
    throw InvalidArgument("gemm: bias is set, allowed: none where c_at_collector or chain take partial sums");
  if (partial && gemm.activation != Activation::kNone)
    throw InvalidArgument("gemm: activation is set, allowed: none where c_at_collector or chain take partial sums");
}

float activate(Activation activation, float value) {
  switch (activation) {
    case Activation::kNone:
      return value;
    case Activation::kRelu:
      return value < 0 ? 0 : value;
    case Activation::kGelu:
      return value * 0.5F * (1 + std::erf(value / std::numbers::sqrt2_v<float>));
    case Activation::kSilu:
      return value / (1 + std::exp(-value));
  }
  throw InvalidArgument("gemm: activation is not one of the enumeration's");
}

void finish_sums(const Gemm& gemm, Size rows, Range cols, float* sums) {
  const Size columns = cols.size();
  if (gemm.bias != nullptr)
    dispatch(gemm.out_type, [&]<class T>() {
      const T* const bias = static_cast<const T*>(gemm.bias) + cols.begin;
      for (Size row = 0; row < rows; ++row)
        for (Size col = 0; col < columns; ++col) sums[row * columns + col] += convert<float>(bias[col]);
    });
  if (gemm.activation == Activation::kNone) return;
  for (Size i = 0; i < rows * columns; ++i) sums[i] = activate(gemm.activation, sums[i]);
}

}  // namespace tandem
