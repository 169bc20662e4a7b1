#include "tools/tandem/options/options.h"

#include <fmt/format.h>

#include <charconv>
#include <limits>

#include "tandem/error.h"

namespace tandem::cli {
namespace {

/// Reads the number at the front of `text`, or the largest number if it exceeds 64 bits. Returns false if there is
/// none. Moves `text` past it.
bool take_number(std::string_view& text, Size& number) {
  if (text.empty() || text[0] < '0' || text[0] > '9') return false;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error == std::errc::result_out_of_range) number = std::numeric_limits<Size>::max();
  text.remove_prefix(static_cast<std::size_t>(end - text.data()));
  return true;
}

bool take_x(std::string_view& text) {
  if (text.empty() || (text[0] != 'x' && text[0] != 'X')) return false;
  text.remove_prefix(1);
  return true;
}

Size unit(std::string_view suffix) {
  if (suffix.empty()) return 1;
  if (suffix == "K" || suffix == "k" || suffix == "KiB") return Size{1} << 10;
  if (suffix == "M" || suffix == "m" || suffix == "MiB") return Size{1} << 20;
  if (suffix == "G" || suffix == "g" || suffix == "GiB") return Size{1} << 30;
  return 0;
}

}  // namespace

std::string with_option(const char* option, std::string_view name, std::string_view message) {
  if (message.starts_with(name) && message.substr(name.size()).starts_with(": "))
    message.remove_prefix(name.size() + 2);
  return fmt::format("{}: {}", option, message);
}

std::optional<int> whole_number(std::string_view text) {
  int number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc{} || end != text.data() + text.size()) return std::nullopt;
  return number;
}

Size parse_size(const char* option, const std::string& text) {
  std::string_view rest = text;
  Size number = 0;
  const bool is_number = take_number(rest, number);
  const Size factor = unit(rest);
  if (!is_number || factor == 0)
    throw InvalidArgument(
        fmt::format("{}: '{}' given, allowed is a whole number from 0 on, perhaps with K, M or G (powers of 1024; KiB, "
                    "MiB and GiB are the same)",
                    option, text));
  constexpr Size most = Size{1} << 46;  // larger than a computer's address space, and small enough for products
  if (number > most / factor)
    throw InvalidArgument(fmt::format("{}: '{}' given, allowed is at most 65536G", option, text));
  return number * factor;
}

std::string Shape::text() const { return fmt::format("{}x{}x{}", m, n, k); }

Shape parse_shape(const char* option, const std::string& text) {
  std::string_view rest = text;
  Shape shape;
  const bool is_shape = take_number(rest, shape.m) && take_x(rest) && take_number(rest, shape.n) && take_x(rest) &&
                        take_number(rest, shape.k) && rest.empty();
  if (!is_shape)
    throw InvalidArgument(fmt::format("{}: '{}' given, allowed is MxNxK, for example 512x14336x4096", option, text));
  if (shape.n < 1 || shape.k < 1)
    throw InvalidArgument(fmt::format("{}: '{}' given, N and K must be 1 or more", option, text));
  constexpr Size largest = Size{1} << 31;
  if (shape.m > largest || shape.n > largest || shape.k > largest)
    throw InvalidArgument(fmt::format("{}: '{}' given, M, N and K may each be at most {}", option, text, largest));
  return shape;
}

TileSize parse_tile(const std::string& text) {
  std::string_view rest = text;
  Size m = 0, n = 0;
  const bool is_tile = take_number(rest, m) && take_x(rest) && take_number(rest, n) && rest.empty();
  constexpr Size smallest = 8;  // as tensor cores have; smaller tiles would make simulations too large
  constexpr Size largest = 4096;
  if (!is_tile || min(m, n) < smallest || max(m, n) > largest)
    throw InvalidArgument(fmt::format("--tile: '{}' given, allowed is MxN with {} to {} each, for example 128x256",
                                      text, smallest, largest));
  return {static_cast<int>(m), static_cast<int>(n)};
}

}  // namespace tandem::cli
