#pragma once
/// Stream-ordered signals: one-warp kernels, so that waits stay bounded.

#include "base/cuda_names.h"
#include "tandem/impl/cuda/comparison.h"
#include "tandem/impl/cuda/context.h"
#include "tandem/signal.h"

namespace tandem::cuda {

/// Writes `value` after everything before it in the stream.
void launch_write(cudaStream_t stream, Signal* word, Epoch value);
void launch_wait(cudaStream_t stream, const Context& context, const Signal* word, Epoch value);
void launch_comparison(cudaStream_t stream, const Context& context, const Comparison& comparison);
/// A kernel that does nothing, so that the stream has what its launches need.
void launch_nothing(cudaStream_t stream);
/// Loads all on the current device.
void load_signal_kernels();

}  // namespace tandem::cuda
