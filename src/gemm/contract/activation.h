#pragma once
/// The activations' definitions, for the host and for portable kernels.

#include <cmath>

#include "tandem/advanced/gemm.h"

namespace tandem {

TANDEM_DEVICE inline float relu(float x) { return x < 0 ? 0 : x; }
TANDEM_DEVICE inline float gelu(float x) { return x * 0.5F * (1 + erff(x * 0.70710678F)); }
TANDEM_DEVICE inline float silu(float x) { return x / (1 + expf(-x)); }

TANDEM_DEVICE inline float activate(Activation activation, float x) {
  switch (activation) {
    case Activation::kNone:
    case Activation::kSwiGlu:  // of pairs: see gated()
    case Activation::kGeGlu:
      break;
    case Activation::kRelu:
      return relu(x);
    case Activation::kGelu:
      return gelu(x);
    case Activation::kSilu:
      return silu(x);
  }
  return x;
}

/// Returns a gated activation of a pair of sums.
TANDEM_DEVICE inline float gated(Activation activation, float gate, float up) {
  return (activation == Activation::kGeGlu ? gelu(gate) : silu(gate)) * up;
}
/// Returns the column of B with the gate of a column of C. That of its up is kGateGroup columns later.
TANDEM_DEVICE constexpr Size column_of_gate(Size column) {
  return column / kGateGroup * (2 * kGateGroup) + column % kGateGroup;
}

/// Activates every element of a fragment of f32 sums.
template <class Sums>
TANDEM_DEVICE Sums activated(Activation activation, Sums sums) {
  switch (activation) {
    case Activation::kNone:
    case Activation::kSwiGlu:
    case Activation::kGeGlu:
      break;
    case Activation::kRelu:
      return sums.map([](float x) { return relu(x); });
    case Activation::kGelu:
      return sums.map([](float x) { return gelu(x); });
    case Activation::kSilu:
      return sums.map([](float x) { return silu(x); });
  }
  return sums;
}

}  // namespace tandem
