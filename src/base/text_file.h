#pragma once
/// Reading the small text files that users give: machine models, selection tables, caches.

#include <optional>
#include <string>

namespace tandem::detail {

/// Returns the text of a regular file, or nothing if it does not exist or cannot be opened. Throws InvalidArgument with
/// the file's name if it is larger than any such file can be.
std::optional<std::string> read_text_file(const std::string& file);

}  // namespace tandem::detail
