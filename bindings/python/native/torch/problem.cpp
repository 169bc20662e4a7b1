#include "problem.h"

#include <algorithm>

namespace tandem::python {
namespace {

using torch::stable::Tensor;
constexpr std::int64_t kAlignment = 16;  // of addresses and rows, in bytes
constexpr std::int64_t kBlock = 128;     // elements of a block with one scale

std::int32_t type_of(const Tensor& x) {
  std::int32_t type = 0;
  TORCH_ERROR_CODE_CHECK(aoti_torch_get_dtype(x.get(), &type));
  return type;
}

// The library's name of a type of x, or none for one without operator.
std::optional<tandem_dtype> named(std::int32_t type, bool is_scaled) {
  if (is_scaled) return type == aoti_torch_dtype_float8_e4m3fn() ? std::optional(TANDEM_E4M3) : std::nullopt;
  if (type == aoti_torch_dtype_bfloat16()) return TANDEM_BF16;
  if (type == aoti_torch_dtype_float16()) return TANDEM_F16;
  if (type == aoti_torch_dtype_float32()) return TANDEM_F32;
  return std::nullopt;
}

bool is_aligned(const Tensor& x) { return reinterpret_cast<std::uintptr_t>(x.const_data_ptr()) % kAlignment == 0; }

// Whether a tensor has this type and is on the device of `x`.
bool is_beside(const Tensor& one, std::int32_t type, const Tensor& x) {
  return type_of(one) == type && one.is_cpu() == x.is_cpu() && one.is_cuda() == x.is_cuda() &&
         one.get_device_index() == x.get_device_index();
}

// The layout of a k x n matrix, or none where it has gaps.
std::optional<tandem_layout> layout_of(const Tensor& w) {
  if (w.stride(0) == 1 && w.stride(1) == w.size(0)) return TANDEM_N_X_K;
  if (w.stride(1) == 1 && w.stride(0) == w.size(1)) return TANDEM_K_X_N;
  return std::nullopt;
}

// Whether a tensor has the leading axes of `x` and `last` behind them.
bool has_rows_of(const Tensor& one, const Tensor& x, std::int64_t last) {
  if (one.dim() != x.dim() || one.size(one.dim() - 1) != last) return false;
  for (std::int64_t axis = 0; axis + 1 < x.dim(); ++axis)
    if (one.size(axis) != x.size(axis)) return false;
  return true;
}

std::int64_t blocks_of(std::int64_t length) { return (length + kBlock - 1) / kBlock; }

// Whether scales are those of blocks, which follows from their shapes as in _scales.py.
bool are_of_blocks(const Tensor& x, Tensors weights, Tensors scales) {
  const std::int64_t steps = blocks_of(x.size(x.dim() - 1));
  if (!has_rows_of(scales[0], x, steps)) return false;
  bool is_other = steps > 1;  // a single step with a scale for each weight is one of rows and weights
  for (std::size_t i = 0; i < weights.size(); ++i) {
    const Tensor& one = scales[i + 1];
    const std::int64_t n = weights[i].size(1);
    if (one.dim() != 2 || one.size(0) != steps || one.size(1) != blocks_of(n)) return false;
    is_other |= one.numel() != 1 && one.numel() != n;
  }
  return is_other;
}

// Adds the kinds of scales to a problem. False: they need a copy or a check.
bool add_scales(const Tensor& x, Tensors weights, Tensors scales, std::vector<std::int64_t>& problem) {
  if (!std::all_of(scales.begin(), scales.end(),
                   [&](const Tensor& one) { return is_beside(one, aoti_torch_dtype_float32(), x); }))
    return false;
  const bool in_blocks = are_of_blocks(x, weights, scales);
  const bool per_row = !in_blocks && scales[0].dim() > 1, per_column = !in_blocks && scales[1].numel() > 1;
  if (!scales[0].is_contiguous() || (per_row && !has_rows_of(scales[0], x, 1)) ||
      (!in_blocks && !per_row && scales[0].numel() != 1))
    return false;
  for (std::size_t i = 0; i < weights.size(); ++i) {
    const Tensor& one = scales[i + 1];
    const bool is_laid_out = in_blocks ? layout_of(one) == TANDEM_N_X_K : one.is_contiguous();
    if (!is_laid_out || (!in_blocks && one.numel() != (per_column ? weights[i].size(1) : 1))) return false;
  }
  problem.insert(problem.end(), {static_cast<std::int64_t>(per_row), per_column, in_blocks});
  return true;
}

}  // namespace

std::vector<std::int64_t> problem_of(const ProductCall& call, std::int64_t pes, const Tensor& x, Tensors tensors) {
  const auto type = named(type_of(x), call.is_scaled);
  if (!type || x.dim() < 2 || x.numel() == 0 || !x.is_contiguous() || !is_aligned(x) || !call.fits(tensors)) return {};
  const Tensors weights = call.weights(tensors), biases = call.biases(tensors);
  const std::int64_t k = x.size(x.dim() - 1), bytes = call.is_scaled ? 1 : *type == TANDEM_F32 ? 4 : 2;
  const std::int64_t out_bytes = call.is_scaled ? 2 : bytes;
  if (k * bytes % kAlignment != 0) return {};
  std::optional<tandem_layout> layout;
  for (const Tensor& w : weights) {
    if (w.dim() != 2 || w.size(0) != k || w.size(1) * out_bytes % kAlignment != 0 || !is_beside(w, type_of(x), x) ||
        !is_aligned(w))
      return {};
    const auto own = layout_of(w);
    if (!own || (layout && *layout != *own) || (call.is_scaled && *own != TANDEM_N_X_K)) return {};
    layout = own;
  }
  for (std::size_t i = 0; i < biases.size(); ++i) {
    const Tensor& one = biases[i];
    if (one.dim() != 1 || one.size(0) != weights[i].size(1) || !one.is_contiguous() || !is_aligned(one) ||
        !is_beside(one, call.is_scaled ? aoti_torch_dtype_bfloat16() : type_of(x), x))
      return {};
  }
  std::vector<std::int64_t> problem{call.operation, *type, *layout, call.activation};
  if (call.is_scaled) {
    problem.push_back(call.out_type);
    if (!add_scales(x, weights, call.scales(tensors), problem)) return {};
    problem.push_back(call.is_fast);
  }
  problem.push_back(call.gathers() ? k : k * pes);
  for (const Tensor& w : weights) problem.push_back(call.gathers() ? w.size(1) * pes : w.size(1));
  return problem;
}

}  // namespace tandem::python
