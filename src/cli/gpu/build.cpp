#include "cli/gpu.h"

namespace tandem::cli {

std::string cuda_build() { return "with CUDA for " TANDEM_CUDA_BUILD; }

}  // namespace tandem::cli
