#include "cuda/profile/profiled_kernels.h"

#include <fmt/format.h>

#include "tandem/error.h"

namespace tandem::cuda {

std::map<const detail::DeviceKernel*, const detail::DeviceKernel*>& profiled_kernels() {
  static std::map<const detail::DeviceKernel*, const detail::DeviceKernel*> kernels;
  return kernels;
}

void add_profiled_kernel(std::string_view name, const detail::DeviceKernel* usual,
                         const detail::DeviceKernel& recorded) {
  if (usual == nullptr || usual->threads != recorded.threads)
    throw InvalidArgument(
        fmt::format("register_profiled_kernel of {}: blocks of {} threads given, register_kernel had {}", name,
                    recorded.threads, usual == nullptr ? "no call" : std::to_string(usual->threads)));
  profiled_kernels()[usual] = &recorded;
}

}  // namespace tandem::cuda
