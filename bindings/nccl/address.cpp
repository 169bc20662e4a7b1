#include "bindings/nccl/address.h"

#include <arpa/inet.h>
#include <fmt/format.h>
#include <ifaddrs.h>
#include <net/if.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <memory>
#include <string_view>
#include <vector>

#include "tandem/error.h"

namespace tandem::nccl {

namespace {

struct Interface {
  std::string name, address;
  bool is_loopback;
};

/// Returns the interfaces that are up and have an address of IPv4.
std::vector<Interface> interfaces() {
  ifaddrs* first = nullptr;
  if (::getifaddrs(&first) != 0) return {};
  const std::unique_ptr<ifaddrs, decltype(&::freeifaddrs)> all(first, &::freeifaddrs);
  std::vector<Interface> found;
  for (const ifaddrs* one = first; one != nullptr; one = one->ifa_next) {
    if (one->ifa_addr == nullptr || one->ifa_addr->sa_family != AF_INET || (one->ifa_flags & IFF_UP) == 0) continue;
    std::array<char, INET_ADDRSTRLEN> text{};
    const auto* const address = reinterpret_cast<const sockaddr_in*>(one->ifa_addr);
    if (::inet_ntop(AF_INET, &address->sin_addr, text.data(), text.size()) == nullptr) continue;
    found.push_back({one->ifa_name, text.data(), (one->ifa_flags & IFF_LOOPBACK) != 0});
  }
  return found;
}

/// Returns whether one of the names, which commas separate, stands for the interface. A "^" in front excludes all of
/// them, and a "=" asks for whole names.
bool is_chosen(const Interface& one, std::string_view names) {
  const bool is_excluded = names.starts_with('^');
  if (is_excluded) names.remove_prefix(1);
  const bool is_whole = names.starts_with('=');
  if (is_whole) names.remove_prefix(1);
  bool is_named = false;
  while (!names.empty()) {
    const std::string_view name = names.substr(0, names.find(','));
    names.remove_prefix(std::min(names.size(), name.size() + 1));
    is_named |= !name.empty() && (is_whole ? one.name == name : one.name.starts_with(name));
  }
  return is_named != is_excluded;
}

}  // namespace

std::string own_address() {
  const char* const chosen = std::getenv("NCCL_SOCKET_IFNAME");
  const bool is_given = chosen != nullptr && *chosen != '\0';
  std::string names;
  for (const Interface& one : interfaces()) {
    names += (names.empty() ? "" : ", ") + one.name;
    const bool is_default = !one.is_loopback && !one.name.starts_with("docker");  // a bridge within this host
    if (is_given ? is_chosen(one, chosen) : is_default) return one.address;
  }
  if (is_given)
    throw InvalidArgument(
        fmt::format("NCCL_SOCKET_IFNAME: '{}' given, allowed are interfaces with an address: {}", chosen, names));
  return "127.0.0.1";
}

}  // namespace tandem::nccl
