#pragma once
/// TANDEM_FULL: whether tests run their whole grids, and which part of them.
///
///   unset        small samples only
///   1            every case
///   K/N          every N-th case from the K-th on, K from 1 to N: N processes share a grid

#include <charconv>
#include <cstdint>
#include <cstdlib>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>

namespace tandem::test {

/// Every `of`-th case of a grid, from number `first` on (counted from 1).
struct GridShard {
  int first = 1;
  int of = 1;

  /// Whether case `number`, counted from 0, is one of them.
  bool takes(std::uint64_t number) const {
    return number % static_cast<std::uint64_t>(of) == static_cast<std::uint64_t>(first - 1);
  }
};

/// Parses a value of TANDEM_FULL. Throws std::invalid_argument for invalid ones.
inline GridShard parse_grid_shard(std::string_view text) {
  if (text == "1") return {};
  GridShard shard;
  const auto number = [](std::string_view digits, int& value) {
    const char* const end = digits.data() + digits.size();
    const auto [stop, error] = std::from_chars(digits.data(), end, value);
    return error == std::errc{} && stop == end && value >= 1;
  };
  const auto slash = text.find('/');
  if (slash == std::string_view::npos || !number(text.substr(0, slash), shard.first) ||
      !number(text.substr(slash + 1), shard.of) || shard.first > shard.of)
    throw std::invalid_argument("TANDEM_FULL: '" + std::string(text) +
                                "' given, allowed is 1 or K/N with K from 1 to N");
  return shard;
}

/// Nothing where TANDEM_FULL is not set.
inline std::optional<GridShard> full_grid() {
  const char* const text = std::getenv("TANDEM_FULL");
  if (text == nullptr) return std::nullopt;
  return parse_grid_shard(text);
}

}  // namespace tandem::test
