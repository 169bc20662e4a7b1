#pragma once
/// Of the driver's names those that src/cuda/error.h needs. In place of the real header, for these tests alone.

enum CUresult { CUDA_SUCCESS = 0 };
