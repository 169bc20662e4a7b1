#include "operators/cuda/register.h"

#include <mutex>

#include "collectives/cuda/register.h"
#include "cuda/device/gemm.h"
#include "cuda/device/register.h"

namespace tandem::cuda {

void register_library_kernels() {
  static std::once_flag once;
  std::call_once(once, [] {
    register_all_reduce();
    register_all_reduce_norm();
    register_merge_heads();
    register_all_reduce_steps();
    register_reduce();
    register_move();
    register_operator_steps();
    register_operators();
    register_gemms();
    register_copies();
  });
}

void register_profiled_library_kernels() {
  register_library_kernels();
  static std::once_flag once;
  std::call_once(once, [] {
    register_profiled_all_reduce();
    register_profiled_reduce();
    register_profiled_move();
  });
}

}  // namespace tandem::cuda
