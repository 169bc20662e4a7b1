#pragma once
/// Standard output and standard error, which may be closed or full, and text that is safe on a terminal.

#include <string>
#include <string_view>

namespace tandem::cli {

/// Opens /dev/null, read-only, in place of each closed standard stream. No file of the tool can then take its number,
/// and writing to it fails.
void open_standard_streams();

/// Throws RuntimeFailure, with the reason, if output to standard output was lost.
void flush_output();
/// Returns whether output to standard output was lost.
bool output_is_lost();

/// Writes `text` to standard error. Bytes that cannot be written are lost.
void note(std::string_view text) noexcept;
/// Writes "tandem: ", the message and a line end to standard error. Bytes that cannot be written are lost.
void complain(std::string_view message) noexcept;

enum class Lines { kOne, kSeveral };

/// Returns `text` for a terminal. Control characters, characters that change the direction of writing, and bytes that
/// are not UTF-8 are escaped as "\x1b" or "\u202e". Line ends stay if several lines are allowed. The middle of a very
/// long line is cut out.
std::string printable(std::string_view text, Lines lines = Lines::kOne);

}  // namespace tandem::cli
