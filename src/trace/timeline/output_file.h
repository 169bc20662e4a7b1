#pragma once
/// Files that are either complete or absent.

#include <functional>
#include <iosfwd>
#include <string>

namespace tandem::trace {

/// Throws InvalidArgument (path and reason) if no file can be written at `path`. The test leaves nothing behind.
void check_writable(const std::string& path);

/// Calls `write` on a temporary file beside `path` and renames it to `path`. Throws InvalidArgument if the file cannot
/// be made, and RuntimeFailure if writing fails (disk full). After an error, also one of `write`, `path` is unchanged.
void write_file(const std::string& path, const std::function<void(std::ostream&)>& write);

/// Removes the temporary files that write_file has not renamed yet. A signal handler of an ending process may call it.
void remove_unfinished_files() noexcept;

}  // namespace tandem::trace
