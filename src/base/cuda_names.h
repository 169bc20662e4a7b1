#pragma once
/// CUDA's declarations, for host code. A program that has no CUDA names another header for them by TANDEM_CUDA_NAMES:
/// the tests' simulated GPUs do.

#if defined(TANDEM_CUDA_NAMES)
#include TANDEM_CUDA_NAMES
#else
#include <cuda.h>
#include <cuda_runtime.h>
#endif
