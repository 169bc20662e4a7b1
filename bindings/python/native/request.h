#pragma once
/// Requests of other languages: from JSON to the arguments of the command-line tool.

#include <nlohmann/json.hpp>
#include <stdexcept>
#include <string>

#include "tools/tandem/run/run_options.h"

namespace tandem::python {

using Json = nlohmann::ordered_json;

/// A value of the wrong type.
class InvalidType : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// A run as a request describes it.
struct Request {
  cli::RunOptions arguments;
  std::vector<double> scales;  ///< of premul_sum, one for each PE
  Size count = 0;              ///< elements of a collective, where "count" is given
  bool has_count = false;
  bool critical_path = false;
};

/// Throws InvalidType and InvalidArgument with the name of the key.
Request parse_run(const Json& json);

/// Returns a message with the names of Python's arguments instead of the tool's options and the library's fields. For
/// example "--pes-per-node: 0 given" becomes "pes_per_node: 0 given".
std::string with_argument_names(const std::string& message);

}  // namespace tandem::python
