#pragma once
/// Standard output and standard error, which may be closed or full, and text that is safe to show there.

#include <string>
#include <string_view>

namespace tandem::cli {

/// Opens /dev/null, for reading alone, in the place of each standard stream that is closed: no file of the tool can
/// take its number, and writing to it fails.
void open_standard_streams();

/// Throws RuntimeFailure, with the reason, where something that was written to standard output is lost.
void flush_output();
/// Whether something that was written to standard output is lost.
bool output_is_lost();

/// Writes `text` to standard error. What cannot be written is lost.
void note(std::string_view text) noexcept;
/// Writes "tandem: ", the message and the end of the line to standard error. What cannot be written is lost.
void complain(std::string_view message) noexcept;

enum class Lines { kOne, kSeveral };

/// `text` for a terminal: control characters, those that change the direction of writing, and bytes that are no UTF-8
/// are escaped as "\x1b" or "\u202e". The ends of lines stay where there may be several. The middle of a line that is
/// very long is left out.
std::string printable(std::string_view text, Lines lines = Lines::kOne);

}  // namespace tandem::cli
