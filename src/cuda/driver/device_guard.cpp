#include "cuda/driver/device_guard.h"

#include "cuda/driver/driver.h"
#include "cuda/driver/error.h"

namespace tandem::cuda {

namespace {

constexpr int kNone = -1;  // no other GPU was current

}  // namespace

int DeviceGuard::enter(int device) {
  int current = kNone;
  check(cudaGetDevice(&current), "cudaGetDevice");
  if (current == device) return kNone;
  CUcontext context = nullptr;
  check(driver().primary_context_retain(&context, device), "cuDevicePrimaryCtxRetain");
  const CUresult pushed = driver().context_push(context);
  if (pushed != CUDA_SUCCESS) driver().primary_context_release(device);
  check(pushed, "cuCtxPushCurrent");
  return current;
}

void DeviceGuard::leave(int device, int before) noexcept {
  if (before == kNone) return;
  CUcontext popped = nullptr;
  driver().context_pop(&popped);
  driver().primary_context_release(device);
  int current = kNone;
  if (cudaGetDevice(&current) == cudaSuccess && current != before) cudaSetDevice(before);
}

}  // namespace tandem::cuda
