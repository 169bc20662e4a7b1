#include "cuda/device/register.h"

#include <fmt/format.h>

#include <mutex>

#include "cuda/device/gemm.h"
#include "tandem/error.h"

namespace tandem::cuda {

std::vector<const detail::DeviceKernel*>& registered_kernels() {
  static std::vector<const detail::DeviceKernel*> kernels;
  return kernels;
}

void add_kernel(std::string_view name, const detail::DeviceKernel*& registered, const detail::DeviceKernel& usual) {
  if (registered == &usual) return;
  if (registered != nullptr)
    throw InvalidArgument(fmt::format("register_kernel of {}: blocks of {} threads given, it is registered with {}",
                                      name, usual.threads, registered->threads));
  registered_kernels().push_back(&usual);
  registered = &usual;
}

void register_collectives() {
  static std::once_flag once;
  std::call_once(once, [] {
    register_all_reduce();
    register_all_reduce_steps();
    register_reduce();
    register_move();
    register_operator_steps();
    register_operators();
    register_gemms();
    register_copies();
  });
}

}  // namespace tandem::cuda
