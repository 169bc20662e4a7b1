// The kernel for GPUs, compiled by nvcc.

#include "shift_add.h"

#include "tandem/advanced/cuda_kernel.cuh"

void register_kernels() {
  tandem::cuda::register_kernel<ShiftAdd, 512>();  // threads of a block: what Grid takes where nothing is given
}
