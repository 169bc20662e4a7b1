#pragma once
/// Which NCCL the libraries of a running process call.

#include <nlohmann/json_fwd.hpp>
#include <string>

namespace tandem::cli {

/// Describes each file of the process that imports NCCL's functions: its `file`, the number of `imports`,
/// and the libraries that they are `bound` to. `unbound` is the number of those that were not called yet, `missing` the
/// names that `library`, Tandem's, lacks. Throws InvalidArgument if there is no such process or its memory cannot be
/// read.
nlohmann::ordered_json inspect_nccl_of(int process, const std::string& library);

}  // namespace tandem::cli
