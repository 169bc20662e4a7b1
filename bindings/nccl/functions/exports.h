#pragma once
/// How the library exports a function: strong under the name pncclX, weak under ncclX. Profilers define ncclX and call
/// pncclX.

#include "bindings/nccl/abi.h"

// Generated: declares the twin of each function.
#include "nccl_twins.h"

/// Stands before the definition of pncclX.
#define TANDEM_NCCL_EXPORT(name) extern "C" decltype(nccl##name) nccl##name __attribute__((weak, alias("pnccl" #name)))
