#pragma once
/// The output of --json.

#include <nlohmann/json_fwd.hpp>

#include "tools/tandem/options/arguments.h"

namespace tandem::cli {

/// Throws InvalidArgument if the file could not be written, or if it is also one of the pictures.
void check_json_file(const Arguments& arguments);
/// Writes to standard output, to the file as a whole, or nowhere, as --json demands.
void write_json(const Arguments& arguments, const nlohmann::ordered_json& json);

}  // namespace tandem::cli
