#pragma once
/// The rows of A of a grouped GEMM with an index, copied to where its kernel reads them.

#include "base/cuda_names.h"
#include "tandem/advanced/gemm.h"

namespace tandem::cuda {

/// Enqueues the copies of the rows of all panels to GemmGroups::gathered. Returns the GEMM that reads them there.
Gemm gather_rows(const Gemm& gemm, int sms, cudaStream_t stream);

/// Loads the kernel on the current device. See registered_kernels.
int load_gather_rows();

}  // namespace tandem::cuda
