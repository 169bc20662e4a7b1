// A tool that was built without the CUDA backend.
#include "cli/gpu.h"

namespace tandem::cli {

std::string cuda_build() { return "without CUDA"; }

}  // namespace tandem::cli
