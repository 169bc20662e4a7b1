#pragma once
/// JSON that people write: what is wrong is said with line and column.

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>

namespace tandem::detail {

/// Parses `text`. Throws InvalidArgument "WHAT: line 3, column 7: not JSON", and for a member that is given twice, of
/// which parsers keep the last: it would hide the other.
nlohmann::json parse_json(std::string_view text, const std::string& what);

/// What was given, short enough for one line.
std::string given(const nlohmann::json& value);

}  // namespace tandem::detail
