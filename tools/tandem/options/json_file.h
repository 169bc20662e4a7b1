#pragma once
/// The output of --json, and files of other options.

#include <initializer_list>
#include <nlohmann/json_fwd.hpp>
#include <string>

#include "tools/tandem/options/arguments.h"

namespace tandem::cli {

/// Throws InvalidArgument if the file could not be written, or if it is also one of `other_files`.
void check_json_file(const OutputOptions&, std::initializer_list<std::string> other_files = {});
/// Throws InvalidArgument, with the name of `option`, if its file cannot be written.
void check_output(const char* option, const std::string& path);
/// Writes to standard output, to the file as a whole, or nowhere, as --json demands.
void write_json(const OutputOptions&, const nlohmann::ordered_json& json);

}  // namespace tandem::cli
