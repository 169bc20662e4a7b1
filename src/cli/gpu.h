#pragma once
/// What the tool does on real GPUs. A build without the CUDA backend has these functions too: they say what is missing.

#include <string>

namespace tandem::cli {

/// For `tandem --version`: "with CUDA for sm_90a", "without CUDA".
std::string cuda_build();

}  // namespace tandem::cli
