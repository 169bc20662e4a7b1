#pragma once
/// CUDA graphs, as tests of the CUDA backend use them.

#include "cuda/driver/graph.h"

namespace tandem::test {

using cuda::Graph;

inline void cuda_check(cudaError_t code, const char* what) { cuda::check(code, what); }

}  // namespace tandem::test
