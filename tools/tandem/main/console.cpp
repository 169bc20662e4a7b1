#include "tools/tandem/main/console.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <system_error>

#include "tandem/error.h"

namespace tandem::cli {
namespace {

/// Longer than any message of the tool without a very long input.
constexpr std::size_t kMostOfALine = 3000;

struct Character {
  std::size_t bytes = 1;
  char32_t code = 0;
  bool is_valid = false;
};

/// Returns the UTF-8 character at the front of `text`.
Character first_of(std::string_view text) {
  const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(text[i]); };
  const unsigned char lead = byte(0);
  if (lead < 0x80) return {1, lead, true};
  const std::size_t bytes = lead >= 0xF0 && lead < 0xF5 ? 4 : lead >= 0xE0 ? 3 : 2;
  if (lead < 0xC2 || lead >= 0xF5 || text.size() < bytes) return {1, lead, false};
  char32_t code = lead & (0xFFU >> (bytes + 1));
  for (std::size_t i = 1; i < bytes; ++i) {
    if ((byte(i) & 0xC0U) != 0x80) return {1, lead, false};
    code = code << 6 | (byte(i) & 0x3FU);
  }
  constexpr char32_t least[] = {0, 0, 0x80, 0x800, 0x10000};
  const bool is_surrogate = code >= 0xD800 && code < 0xE000;
  if (code < least[bytes] || code > 0x10FFFF || is_surrogate) return {1, lead, false};
  return {bytes, code, true};
}

/// Returns whether a character moves the cursor, changes colours, or changes the order of other characters.
bool is_control(char32_t code) {
  return code < 0x20 || (code >= 0x7F && code < 0xA0) || code == 0x61C || code == 0x200E || code == 0x200F ||
         (code >= 0x2028 && code <= 0x202E) || (code >= 0x2066 && code <= 0x2069) || code == 0xFEFF;
}

std::string escaped(const Character& character) {
  if (character.code == '\n') return "\\n";
  if (character.code == '\t') return "\\t";
  return character.code < 0x100 ? fmt::format("\\x{:02x}", static_cast<unsigned>(character.code))
                                : fmt::format("\\u{:04x}", static_cast<unsigned>(character.code));
}

bool continues_character(char byte) { return (static_cast<unsigned char>(byte) & 0xC0U) == 0x80; }

/// Cuts out the middle: the option is at the front, the allowed values are at the back.
std::string shortened(const std::string& line) {
  if (line.size() <= kMostOfALine) return line;
  std::size_t front = kMostOfALine / 3, back = line.size() - kMostOfALine / 2;
  while (continues_character(line[front])) --front;
  while (continues_character(line[back])) ++back;
  return fmt::format("{} ... ({} bytes left out) ... {}", line.substr(0, front), back - front, line.substr(back));
}

std::string escaped_line(std::string_view line) {
  std::string text;
  while (!line.empty()) {
    const Character character = first_of(line);
    if (character.is_valid && !is_control(character.code))
      text += line.substr(0, character.bytes);
    else
      text += escaped(character);
    line.remove_prefix(character.bytes);
  }
  return shortened(text);
}

}  // namespace

void open_standard_streams() {
  for (int fd = 0; fd <= 2; ++fd)
    if (::fcntl(fd, F_GETFD) < 0 && errno == EBADF) ::open("/dev/null", O_RDONLY);  // the lowest free number
}

bool output_is_lost() { return std::fflush(stdout) != 0 || std::ferror(stdout) != 0; }

void flush_output() {
  errno = 0;
  if (!output_is_lost()) return;
  const std::string why = errno == 0 ? "" : ": " + std::generic_category().message(errno);
  throw RuntimeFailure("writing to standard output failed" + why);
}

void note(std::string_view text) noexcept {
  std::fwrite(text.data(), 1, text.size(), stderr);
  std::fflush(stderr);
}

void complain(std::string_view message) noexcept {
  try {
    note(fmt::format("tandem: {}\n", message));
  } catch (const std::exception&) {  // no memory for the line
    note(message);
  }
}

std::string printable(std::string_view text, Lines lines) {
  if (lines == Lines::kOne) return escaped_line(text);
  std::string all;
  for (std::size_t begin = 0; begin < text.size();) {
    const std::size_t end = std::min(text.find('\n', begin), text.size());
    all += escaped_line(text.substr(begin, end - begin));
    if (end < text.size()) all += '\n';
    begin = end + 1;
  }
  return all;
}

}  // namespace tandem::cli
