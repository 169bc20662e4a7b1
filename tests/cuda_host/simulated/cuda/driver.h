#pragma once
/// Of src/cuda/driver.h what src/cuda/device_guard.cpp needs: contexts of simulated GPUs. In place of the real header,
/// for these tests alone.

#include <cuda.h>
#include <cuda_runtime.h>

namespace tandem::cuda {

struct Driver {
  CUresult (*primary_context_retain)(CUcontext* context, int device);
  CUresult (*primary_context_release)(int device);
  CUresult (*context_push)(CUcontext context);
  CUresult (*context_pop)(CUcontext* context);
};
const Driver& driver();

}  // namespace tandem::cuda
