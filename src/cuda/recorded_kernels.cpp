#include "cuda/recorded_kernels.h"

#include <mutex>

#include "cuda/register.h"

namespace tandem::cuda {

std::map<const detail::DeviceKernel*, const detail::DeviceKernel*>& recorded_kernels() {
  static std::map<const detail::DeviceKernel*, const detail::DeviceKernel*> kernels;
  return kernels;
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
