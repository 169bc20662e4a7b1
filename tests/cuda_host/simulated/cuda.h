#pragma once
/// Of the driver's names those that src/cuda/error.h and device_guard.cpp need. In place of the real header, for these
/// tests alone.

enum CUresult { CUDA_SUCCESS = 0, CUDA_ERROR_INVALID_CONTEXT = 201 };
using CUcontext = struct CUctx_st*;
