// The parts that all native operators of PyTorch share: the functions of the C API, and new tensors.
#pragma once
#include <torch/csrc/stable/tensor.h>

#include <cstdint>
#include <optional>
#include <vector>

#include "tandem.h"

namespace tandem::python {

// The functions of the library that the package has loaded, which may be any. _native.py names them in this order.
struct Library {
  decltype(&tandem_all_reduce) all_reduce;
  decltype(&tandem_reduce_scatter) reduce_scatter;
  decltype(&tandem_all_gather) all_gather;
  decltype(&tandem_all_to_all) all_to_all;
  decltype(&tandem_plan_run_with) plan_run_with;
  decltype(&tandem_synchronize) synchronize;
};
extern Library library;                         // NOLINT(cppcoreguidelines-avoid-non-const-global-variables)
extern thread_local tandem_status last_status;  // of this thread's last operator

template <typename Handle>
Handle handle(std::int64_t number) {
  return reinterpret_cast<Handle>(number);  // NOLINT(performance-no-int-to-ptr): Python has handles as numbers
}

// A new contiguous tensor on the device of `like`, of its type or another one of PyTorch's.
torch::stable::Tensor empty(const std::vector<std::int64_t>& sizes, const torch::stable::Tensor& like,
                            std::optional<std::int32_t> other_type = std::nullopt);

}  // namespace tandem::python
