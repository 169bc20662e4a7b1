// Collectives from PyTorch's dispatcher to the C API, without Python between them. Files here need no symbol of
// libtorch's C++ interface. So one library serves PyTorch 2.10 and newer. tandem/torch/_native.py loads it and checks
// the arguments.
#include <torch/csrc/stable/library.h>

#include <cstddef>
#include <optional>

#include "call.h"

namespace tandem::python {
namespace {

using torch::stable::Tensor;

enum Collective : std::int64_t { kAllReduce, kReduceScatter, kAllGather, kAllToAll };

// A call in one number, because the dispatcher takes 0.2 us for each argument of an operator.
struct CollectiveCall {
  explicit CollectiveCall(std::int64_t code)
      : type(static_cast<tandem_dtype>(code & 0xff)),
        operation(static_cast<tandem_op>(code >> 8 & 0xff)),
        which(static_cast<Collective>(code >> 16 & 0xff)),
        pes(code >> 24) {}
  tandem_dtype type;
  tandem_op operation;
  Collective which;
  std::int64_t pes;
};

// `x` is contiguous, and its first axis has the parts that the collective needs. On CPUs it returns when the result is
// there. None: the call failed, and tandem_torch_status() has the reason.
std::optional<Tensor> collective(const Tensor& x, std::int64_t code, std::int64_t world, std::int64_t stream) {
  const auto [type, operation, which, pes] = CollectiveCall(code);
  std::vector<std::int64_t> sizes(x.dim() > 0 || which != kAllGather ? x.dim() : 1, 1);
  for (std::int64_t axis = 0; axis < x.dim(); ++axis) sizes[axis] = x.size(axis);
  if (which == kAllGather) sizes[0] *= pes;
  if (which == kReduceScatter) sizes[0] /= pes;
  Tensor out = empty(sizes, x);
  auto* pe_world = handle<tandem_world*>(world);
  auto* on = handle<void*>(stream);
  const auto count = static_cast<std::size_t>(x.numel());
  const void* in = x.const_data_ptr();
  void* result = out.mutable_data_ptr();
  switch (which) {
    case kAllReduce:
      last_status = library.all_reduce(pe_world, in, result, count, type, operation, on);
      break;
    case kReduceScatter:
      last_status = library.reduce_scatter(pe_world, in, result, count / pes, type, operation, on);
      break;
    case kAllGather:
      last_status = library.all_gather(pe_world, in, result, count, type, on);
      break;
    case kAllToAll:
      last_status = library.all_to_all(pe_world, in, result, count / pes, type, on);
      break;
    default:
      last_status = TANDEM_INVALID_ARGUMENT;
  }
  if (last_status == TANDEM_SUCCESS && x.is_cpu()) last_status = library.synchronize(pe_world, nullptr);
  return last_status == TANDEM_SUCCESS ? std::optional(out) : std::nullopt;
}

}  // namespace
}  // namespace tandem::python

STABLE_TORCH_LIBRARY_FRAGMENT(tandem, m) { m.def("_collective(Tensor x, int code, int world, int stream) -> Tensor?"); }
STABLE_TORCH_LIBRARY_IMPL(tandem, CPU, m) { m.impl("_collective", TORCH_BOX(&tandem::python::collective)); }
STABLE_TORCH_LIBRARY_IMPL(tandem, CUDA, m) { m.impl("_collective", TORCH_BOX(&tandem::python::collective)); }
