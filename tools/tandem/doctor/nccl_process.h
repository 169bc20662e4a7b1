#pragma once
/// Which NCCL the libraries of a running process call.

#include <nlohmann/json_fwd.hpp>
#include <string>

namespace tandem::cli {

/// Returns, for each library or program of the process that imports NCCL's functions, `file`, the number of `imports`,
/// the libraries `bound` to them, the number `unbound` of those that were not called yet, and the names `missing` in
/// `library`, Tandem's. Throws InvalidArgument if there is no such process or its memory cannot be read.
nlohmann::ordered_json inspect_nccl_of(int process, const std::string& library);

}  // namespace tandem::cli
