#pragma once
/// Marks a function that kernels call: compiled for the GPU too where the compiler is nvcc.
#if defined(__CUDACC__)
#define TANDEM_DEVICE __host__ __device__
#else
#define TANDEM_DEVICE
#endif
