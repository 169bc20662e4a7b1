#pragma once
/// Stream-ordered signals of signal_kernels.h that record themselves, and a stamp between other work.

#include "base/cuda_names.h"
#include "tandem/impl/cuda/context.h"
#include "tandem/impl/cuda/record.h"

namespace tandem::cuda {

/// Records of each of these kernels: its life and one operation.
inline constexpr int kSignalRecords = 2;

void launch_profiled_write(cudaStream_t stream, const RecordArea& area, Signal* word, Epoch value);
void launch_profiled_wait(cudaStream_t stream, const RecordArea& area, const Context& context, const Signal* word,
                          Epoch value);
/// A kernel that records its own life and does nothing else.
void launch_stamp(cudaStream_t stream, const RecordArea& area);
/// Loads all of them on the current device.
void load_profiled_signals();

}  // namespace tandem::cuda
