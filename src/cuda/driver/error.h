#pragma once
/// CUDA's error codes as the library's exceptions.

#include "base/cuda_names.h"

namespace tandem::cuda {

/// Throws RuntimeFailure "what: CUDA's own text" unless the code is success.
void check(cudaError_t code, const char* what);
void check(CUresult code, const char* what);

}  // namespace tandem::cuda
