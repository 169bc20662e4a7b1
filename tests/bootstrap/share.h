#pragma once
/// Requirements of the memory of all members of a team.

#include <cstdint>
#include <stdexcept>

#include "bootstrap/local/shared_memory.h"

namespace tandem::bootstrap::testing {

/// Every member writes into the memory of all. Each finds what all wrote, in its own and in the others'.
inline void share(WorldMember& member, FdExchange& exchange, const Team& team) {
  constexpr std::size_t words = 512;
  const auto value = [](int from, int to, std::size_t word) {
    return std::uint64_t{1000003} * static_cast<std::uint64_t>(from * 64 + to) + word;
  };
  const auto members = static_cast<std::size_t>(team.size);
  const SharedMemory memory(exchange, team, members * words * sizeof(std::uint64_t));
  const auto slot = [&](int from, int to) {
    return reinterpret_cast<std::uint64_t*>(memory.on(to)) + static_cast<std::size_t>(from) * words;
  };
  for (int to = 0; to < team.size; ++to)
    for (std::size_t word = 0; word < words; ++word) slot(team.me, to)[word] = value(team.me, to, word);
  member.barrier("written", team);
  for (int to = 0; to < team.size; ++to)
    for (int from = 0; from < team.size; ++from)
      for (std::size_t word = 0; word < words; ++word)
        if (slot(from, to)[word] != value(from, to, word)) throw std::runtime_error("another value than was written");
  member.barrier("read", team);
}

}  // namespace tandem::bootstrap::testing
