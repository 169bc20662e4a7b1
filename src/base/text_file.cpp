#include "base/text_file.h"

#include <fmt/format.h>

#include <filesystem>
#include <fstream>

#include "tandem/error.h"

namespace tandem::detail {

std::optional<std::string> read_text_file(const std::string& file) {
  constexpr std::size_t most = std::size_t{64} << 20;
  std::error_code ignored;
  if (!std::filesystem::is_regular_file(file, ignored)) return std::nullopt;
  std::ifstream stream(file, std::ios::binary);
  if (!stream.is_open()) return std::nullopt;
  std::string text;
  for (char chunk[65536]; stream.read(chunk, sizeof chunk), stream.gcount() > 0;) {
    text.append(chunk, static_cast<std::size_t>(stream.gcount()));
    if (text.size() > most) throw InvalidArgument(fmt::format("{}: larger than {} MiB", file, most >> 20));
  }
  return text;
}

}  // namespace tandem::detail
