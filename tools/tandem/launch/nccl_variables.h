#pragma once
/// `tandem launch --nccl`: variables by which programs load Tandem's NCCL interface.

#include <string>
#include <vector>

namespace tandem::cli {

/// Returns the file of Tandem's NCCL interface. Throws Unsupported if it is not beside this program.
std::string nccl_library();
/// Returns the variables as NAME=VALUE. PyTorch needs LD_PRELOAD, because the path of its own NCCL precedes
/// LD_LIBRARY_PATH. Throws Unsupported if the library is not beside this program.
std::vector<std::string> nccl_variables();

}  // namespace tandem::cli
