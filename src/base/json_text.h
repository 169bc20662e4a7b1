#pragma once
/// Parsing of JSON that people write. Errors name the line and the column.

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>

namespace tandem::detail {

/// Parses `text`. Throws InvalidArgument "WHAT: line 3, column 7: not JSON". It also rejects a name that occurs twice
/// in one object, because parsers keep only the last value.
nlohmann::json parse_json(std::string_view text, const std::string& what);

/// Returns a short form of a given value for an error line.
std::string given(const nlohmann::json& value);

}  // namespace tandem::detail
