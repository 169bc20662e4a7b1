#include "cuda/driver/device_guard.h"

#include "cuda/driver/driver.h"
#include "cuda/driver/error.h"

namespace tandem::cuda {

DeviceGuard::DeviceGuard(int device) : device_(device) {
  int current = kNone;
  check(cudaGetDevice(&current), "cudaGetDevice");
  if (current == device) return;
  CUcontext context = nullptr;
  check(driver().primary_context_retain(&context, device), "cuDevicePrimaryCtxRetain");
  const CUresult pushed = driver().context_push(context);
  if (pushed != CUDA_SUCCESS) driver().primary_context_release(device);
  check(pushed, "cuCtxPushCurrent");
  other_ = current;
}

DeviceGuard::~DeviceGuard() {
  if (other_ == kNone) return;
  CUcontext popped = nullptr;
  driver().context_pop(&popped);
  driver().primary_context_release(device_);
  int current = kNone;
  if (cudaGetDevice(&current) == cudaSuccess && current != other_) cudaSetDevice(other_);
}

}  // namespace tandem::cuda
