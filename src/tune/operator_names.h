#pragma once
/// Names of operator options, for the cache file and for users. The parsers throw InvalidArgument.

#include <string>

#include "tandem/operators.h"

namespace tandem::tune {

const char* name(std::optional<CopyBy> copy_by);
const char* name(std::optional<Reduction> reduction);
const char* name(Direction direction);
Operator parse_operator(const std::string& text);
Form parse_form(const std::string& text);
Reduction parse_reduction(const std::string& text);
CopyBy parse_copy_by(const std::string& text);
Direction parse_direction(const std::string& text);

}  // namespace tandem::tune
