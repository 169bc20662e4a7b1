#pragma once
/// Where --json writes.

#include <nlohmann/json_fwd.hpp>

#include "tools/tandem/options/arguments.h"

namespace tandem::cli {

/// Throws InvalidArgument where the file could not be written, or is one of the pictures as well.
void check_json_file(const Arguments& arguments);
/// To standard output, to the file as a whole, or nowhere: as --json says.
void write_json(const Arguments& arguments, const nlohmann::ordered_json& json);

}  // namespace tandem::cli
