#pragma once
/// CUDA's error codes as the library's exceptions.

#include <cuda_runtime.h>
#include <fmt/format.h>

#include "tandem/error.h"

namespace tandem::c {

/// Throws RuntimeFailure "what: CUDA's own words" unless the code is success.
inline void check(cudaError_t code, const char* what) {
  if (code != cudaSuccess) throw RuntimeFailure(fmt::format("{}: {}", what, cudaGetErrorString(code)));
}

}  // namespace tandem::c
