#include "cuda/profile/recorded_kernels.h"

#include <fmt/format.h>

#include <mutex>

#include "cuda/device/register.h"
#include "tandem/error.h"

namespace tandem::cuda {

std::map<const detail::DeviceKernel*, const detail::DeviceKernel*>& recorded_kernels() {
  static std::map<const detail::DeviceKernel*, const detail::DeviceKernel*> kernels;
  return kernels;
}

void add_recorded_kernel(std::string_view name, const detail::DeviceKernel* usual,
                         const detail::DeviceKernel& recorded) {
  if (usual == nullptr || usual->threads != recorded.threads)
    throw InvalidArgument(
        fmt::format("register_recorded_kernel of {}: blocks of {} threads given, register_kernel had {}", name,
                    recorded.threads, usual == nullptr ? "no call" : std::to_string(usual->threads)));
  recorded_kernels()[usual] = &recorded;
}

void register_recorded_collectives() {
  register_collectives();
  static std::once_flag once;
  std::call_once(once, [] {
    register_recorded_all_reduce();
    register_recorded_reduce();
    register_recorded_move();
  });
}

}  // namespace tandem::cuda
