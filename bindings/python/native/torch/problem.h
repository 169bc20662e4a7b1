// The call of an overlapped product as the native operators get it, and the problem that its tensors are.
#pragma once
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "call.h"

namespace tandem::python {

using Tensors = std::span<const torch::stable::Tensor>;

// A call in one number, as for collectives. Its tensors are in one list: weights, then a bias for each or none. With
// fp8 the scale of x and those of the weights follow.
struct ProductCall {
  explicit ProductCall(std::int64_t code)
      : operation(static_cast<tandem_operator>(code & 0xff)),
        activation(code >> 8 & 0xff),
        out_type(static_cast<tandem_dtype>(code >> 16 & 0xff)),
        keeps((code >> 24 & 1) != 0),
        is_biased((code >> 25 & 1) != 0),
        is_scaled((code >> 26 & 1) != 0),
        is_fast((code >> 27 & 1) != 0),
        count(static_cast<std::size_t>(code >> 32)) {}
  bool gathers() const { return operation == TANDEM_ALL_GATHER_GEMM; }
  Tensors weights(Tensors all) const { return all.first(count); }
  Tensors biases(Tensors all) const { return all.subspan(count, is_biased ? count : 0); }
  Tensors scales(Tensors all) const { return all.subspan(is_biased ? 2 * count : count); }
  // Whether the list has as many tensors as the call needs.
  bool fits(Tensors all) const {
    return count > 0 && all.size() == count * (is_biased ? 2 : 1) + (is_scaled ? count + 1 : 0);
  }

  tandem_operator operation;
  std::int64_t activation;
  tandem_dtype out_type;  // of results, with scales
  bool keeps;             // the gathered x is the last result
  bool is_biased;
  bool is_scaled;
  bool is_fast;       // with fast accumulation
  std::size_t count;  // of weights
};

// The problem of a call over all PEs, as the kernel in Python has it. Empty: these tensors need that kernel.
std::vector<std::int64_t> problem_of(const ProductCall& call, std::int64_t pes, const torch::stable::Tensor& x,
                                     Tensors tensors);

}  // namespace tandem::python
