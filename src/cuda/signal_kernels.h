#pragma once
/// Stream-ordered signals: one-warp kernels, so that a captured graph reads epochs from device memory and waits stay bounded.

#include <cuda_runtime.h>

#include "tandem/impl/cuda/context.h"
#include "tandem/signal.h"

namespace tandem::cuda {

/// Writes `*from` (or `value` where that is null) after everything before it in the stream.
void launch_write(cudaStream_t stream, Signal* word, const Epoch* from, Epoch value);
void launch_wait(cudaStream_t stream, const Context& context, const Signal* word, Epoch value);
/// Loads both on the current device.
void load_signal_kernels();

}  // namespace tandem::cuda
