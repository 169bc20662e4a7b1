#include "cuda/device/register.h"

#include <fmt/format.h>

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

}  // namespace tandem::cuda
