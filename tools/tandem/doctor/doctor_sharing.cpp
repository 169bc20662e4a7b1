// GPUs that processes share.
#include <fmt/format.h>

#include <cstdlib>
#include <nlohmann/json.hpp>

#include "bootstrap/local/environment.h"
#include "tandem/error.h"
#include "tools/tandem/doctor/doctor.h"

namespace tandem::cli {

void inspect_sharing(std::size_t gpus, std::vector<Finding>& findings) {
  try {
    const char* const here = std::getenv("LOCAL_WORLD_SIZE");
    const int processes = here == nullptr ? 1 : std::atoi(here);
    if (bootstrap::may_share_gpus())
      findings.push_back({false,
                          "TANDEM_SHARE_GPU is 1: processes on one GPU take turns by time slices, and times mean "
                          "nothing there",
                          "unset it for measurements"});
    else if (gpus > 0 && processes > static_cast<int>(gpus))
      findings.push_back(
          {false,
           fmt::format("this host has {} processes and {} GPUs, on which no world of them is made", processes, gpus),
           "TANDEM_SHARE_GPU=1 lets processes share a GPU, for development and tests"});
  } catch (const InvalidArgument& error) {
    findings.push_back({true, error.what(), "unset it, or set it to 1 for tests of processes on one GPU"});
  }
}

}  // namespace tandem::cli
