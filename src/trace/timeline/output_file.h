#pragma once
/// Files that are either complete or not there.

#include <functional>
#include <iosfwd>
#include <string>

namespace tandem::trace {

/// Throws InvalidArgument (path and reason) where a file could not be written at `path`. Leaves no trace of the try.
void check_writable(const std::string& path);

/// Calls `write` on a temporary file beside `path` and renames it to `path`. Throws InvalidArgument where the file
/// cannot be made and RuntimeFailure where writing fails (disk full); then, and if `write` throws, `path` is as it was.
void write_file(const std::string& path, const std::function<void(std::ostream&)>& write);

/// Removes the temporary files that write_file has not renamed yet. Safe in a signal handler of a process that ends.
void remove_unfinished_files() noexcept;

}  // namespace tandem::trace
