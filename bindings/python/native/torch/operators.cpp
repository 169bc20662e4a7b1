// Collectives from PyTorch's dispatcher to the C API, without Python between them. It needs no symbol of libtorch's C++
// interface, so one file serves PyTorch 2.10 and newer. tandem/torch/_native.py loads it and checks the arguments.
#include <torch/csrc/stable/library.h>
#include <torch/csrc/stable/tensor.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "tandem.h"

namespace {

using torch::stable::Tensor;

// The functions of the library that the package has loaded, which may be any.
struct Library {
  decltype(&tandem_all_reduce) all_reduce;
  decltype(&tandem_reduce_scatter) reduce_scatter;
  decltype(&tandem_all_gather) all_gather;
  decltype(&tandem_all_to_all) all_to_all;
  decltype(&tandem_synchronize) synchronize;
};
Library library;                                          // NOLINT(cppcoreguidelines-avoid-non-const-global-variables)
thread_local tandem_status last_status = TANDEM_SUCCESS;  // of this thread's last operator

enum Collective : std::int64_t { kAllReduce, kReduceScatter, kAllGather, kAllToAll };

// A new contiguous tensor of the type and on the device of `like`.
Tensor empty(const std::vector<std::int64_t>& sizes, const Tensor& like) {
  std::vector<std::int64_t> strides(sizes.size());
  std::int64_t stride = 1;
  for (std::size_t axis = sizes.size(); axis-- > 0;) {
    strides[axis] = stride;
    stride *= sizes[axis] > 0 ? sizes[axis] : 1;
  }
  std::int32_t type = 0;
  std::int32_t device = 0;
  std::int32_t index = 0;
  AtenTensorHandle made = nullptr;
  STABLE_TORCH_ERROR_CODE_CHECK(aoti_torch_get_dtype(like.get(), &type));
  STABLE_TORCH_ERROR_CODE_CHECK(aoti_torch_get_device_type(like.get(), &device));
  STABLE_TORCH_ERROR_CODE_CHECK(aoti_torch_get_device_index(like.get(), &index));
  STABLE_TORCH_ERROR_CODE_CHECK(aoti_torch_empty_strided(static_cast<std::int64_t>(sizes.size()), sizes.data(),
                                                         strides.data(), type, device, index, &made));
  return Tensor(made);
}

template <typename Handle>
Handle handle(std::int64_t number) {
  return reinterpret_cast<Handle>(number);  // NOLINT(performance-no-int-to-ptr): Python has handles as numbers
}

// A call in one number, because the dispatcher takes 0.2 us for each argument of an operator.
struct Call {
  explicit Call(std::int64_t code)
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
  const auto [type, operation, which, pes] = Call(code);
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

STABLE_TORCH_LIBRARY_FRAGMENT(tandem, m) { m.def("_collective(Tensor x, int code, int world, int stream) -> Tensor?"); }
STABLE_TORCH_LIBRARY_IMPL(tandem, CPU, m) { m.impl("_collective", TORCH_BOX(&collective)); }
STABLE_TORCH_LIBRARY_IMPL(tandem, CUDA, m) { m.impl("_collective", TORCH_BOX(&collective)); }

extern "C" {

// The functions that operators call, in the order of Library.
void tandem_torch_use(const void* const* functions) { library = *reinterpret_cast<const Library*>(functions); }

// The status of this thread's last operator.
int tandem_torch_status() { return last_status; }
}
