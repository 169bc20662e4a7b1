#include "world/pes/nodes.h"

#include <fmt/format.h>

#include <charconv>
#include <cstdlib>
#include <string_view>

#include "tandem/error.h"

namespace tandem::world {

namespace {

/// "PEs 0, 2 on host a, PEs 1, 3 on host b".
std::string list_of(const std::vector<HostOfPe>& hosts) {
  std::string text;
  for (std::size_t first = 0; first < hosts.size(); ++first) {
    std::string pes;
    bool is_first = true;
    for (std::size_t pe = 0; pe < hosts.size(); ++pe) {
      if (hosts[pe].id != hosts[first].id) continue;
      is_first = is_first && pe >= first;
      pes += (pes.empty() ? "" : ", ") + std::to_string(pe);
    }
    if (is_first) text += fmt::format("{}PEs {} on host {}", text.empty() ? "" : ", ", pes, hosts[first].name);
  }
  return text;
}

}  // namespace

int pes_per_host(const std::vector<HostOfPe>& hosts) {
  std::size_t size = 1;
  while (size < hosts.size() && hosts[size].id == hosts[0].id) ++size;
  bool is_regular = hosts.size() % size == 0;
  for (std::size_t pe = 0; is_regular && pe < hosts.size(); ++pe) {
    is_regular = hosts[pe].id == hosts[pe - pe % size].id;
    for (std::size_t before = 0; is_regular && before < pe - pe % size; before += size)
      is_regular = hosts[before].id != hosts[pe].id;
  }
  if (!is_regular)
    throw InvalidArgument(fmt::format(
        "hosts: {} given, allowed are consecutive PEs on each host, and as many on every host", list_of(hosts)));
  return static_cast<int>(size);
}

int node_size_of(int pes_of_host) {
  const char* const text = std::getenv("TANDEM_NODE_SIZE");
  if (text == nullptr || *text == '\0') return pes_of_host;
  const std::string_view given = text;
  int size = 0;
  const auto [end, error] = std::from_chars(given.data(), given.data() + given.size(), size);
  if (error != std::errc{} || end != given.data() + given.size() || size < 1 || pes_of_host % size != 0)
    throw InvalidArgument(
        fmt::format("TANDEM_NODE_SIZE: '{}' given, allowed are divisors of the {} PEs of a host", given, pes_of_host));
  return size;
}

}  // namespace tandem::world
