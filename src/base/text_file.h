#pragma once
/// Reading the small text files that users give: machine models, selection tables, caches.

#include <optional>
#include <string>

namespace tandem::detail {

/// The text of a regular file; nothing where there is none or it cannot be opened. Throws InvalidArgument, naming the
/// file, where it is larger than any of these files can be.
std::optional<std::string> read_text_file(const std::string& file);

}  // namespace tandem::detail
