#pragma once
/// Marks a function that kernels call. nvcc compiles it for the GPU, too.
#if defined(__CUDACC__)
#define TANDEM_DEVICE __host__ __device__
#else
#define TANDEM_DEVICE
#endif
