#include "call.h"

#include <cstddef>

namespace tandem::python {

Library library;  // NOLINT(cppcoreguidelines-avoid-non-const-global-variables)
thread_local tandem_status last_status = TANDEM_SUCCESS;

torch::stable::Tensor empty(const std::vector<std::int64_t>& sizes, const torch::stable::Tensor& like,
                            std::optional<std::int32_t> other_type) {
  std::vector<std::int64_t> strides(sizes.size());
  std::int64_t stride = 1;
  for (std::size_t axis = sizes.size(); axis-- > 0;) {
    strides[axis] = stride;
    stride *= sizes[axis] > 0 ? sizes[axis] : 1;
  }
  std::int32_t device = 0;
  std::int32_t index = 0;
  AtenTensorHandle made = nullptr;
  std::int32_t type = other_type.value_or(0);
  if (!other_type) TORCH_ERROR_CODE_CHECK(aoti_torch_get_dtype(like.get(), &type));
  TORCH_ERROR_CODE_CHECK(aoti_torch_get_device_type(like.get(), &device));
  TORCH_ERROR_CODE_CHECK(aoti_torch_get_device_index(like.get(), &index));
  TORCH_ERROR_CODE_CHECK(aoti_torch_empty_strided(static_cast<std::int64_t>(sizes.size()), sizes.data(), strides.data(),
                                                  type, device, index, &made));
  return torch::stable::Tensor(made);
}

}  // namespace tandem::python

extern "C" {

// The functions that operators call, in the order of Library.
void tandem_torch_use(const void* const* functions) {
  tandem::python::library = *reinterpret_cast<const tandem::python::Library*>(functions);
}

// The status of this thread's last operator.
int tandem_torch_status() { return tandem::python::last_status; }
}
