#include "cuda/register.h"

#include <mutex>

#include "cuda/gemm.h"

namespace tandem::cuda {

std::vector<const detail::DeviceKernel*>& registered_kernels() {
  static std::vector<const detail::DeviceKernel*> kernels;
  return kernels;
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
