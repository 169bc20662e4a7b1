// The hosts of a job: how each is reached, and by which engine it exchanges messages.
#include <fmt/format.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netdb.h>
#include <sys/ioctl.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>

#include "bootstrap/local/environment.h"
#include "bootstrap/protocol/fd.h"
#include "bootstrap/rendezvous/world_member.h"
#include "tools/tandem/doctor/doctor.h"

namespace tandem::cli {
namespace {

using Json = nlohmann::ordered_json;

/// Returns the name of the interface that has an address; empty if none has it.
std::string interface_of(const std::string& address) {
  ifaddrs* all = nullptr;
  if (::getifaddrs(&all) != 0) return "";
  const std::unique_ptr<ifaddrs, decltype(&::freeifaddrs)> owner(all, ::freeifaddrs);
  for (const ifaddrs* one = all; one != nullptr; one = one->ifa_next) {
    if (one->ifa_addr == nullptr) continue;
    const int family = one->ifa_addr->sa_family;
    if (family != AF_INET && family != AF_INET6) continue;
    std::array<char, NI_MAXHOST> text{};
    const socklen_t bytes = family == AF_INET ? sizeof(sockaddr_in) : sizeof(sockaddr_in6);
    if (::getnameinfo(one->ifa_addr, bytes, text.data(), text.size(), nullptr, 0, NI_NUMERICHOST) == 0 &&
        address == text.data())
      return one->ifa_name;
  }
  return "";
}

Json mtu_of(const std::string& interface) {
  const bootstrap::Fd socket(::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  ifreq request{};
  std::strncpy(request.ifr_name, interface.c_str(), IFNAMSIZ - 1);
  if (interface.empty() || ::ioctl(socket.get(), SIOCGIFMTU, &request) != 0) return nullptr;
  return request.ifr_mtu;
}

Json facts_of_process(const std::string& address) {
  const std::string interface = interface_of(address);
  const auto variable = [](const char* name, const char* otherwise) {
    return bootstrap::variable_of_process(name).value_or(otherwise);
  };
  return {{"host", bootstrap::name_of_host()},
          {"node", nullptr},
          {"address", address},
          {"interface", interface.empty() ? Json() : Json(interface)},
          {"mtu", mtu_of(interface)},
          {"libfabric", find_libfabric()["version"]},
          {"provider", variable("TANDEM_FABRIC", "tcp")},
          {"seal", variable("TANDEM_SEAL", "headers")}};
}

/// Returns "1500 on host a, 9000 on host b" if values differ, with the first PE of each host and value. `known`: values
/// that were not found are left out.
std::string differences(const Json& pes, const char* key, bool known) {
  std::vector<std::string> parts;
  const Json* first = nullptr;
  bool differ = false;
  for (const Json& pe : pes) {
    const Json& value = pe[key];
    if (known && value.is_null()) continue;
    if (first == nullptr) first = &value;
    const std::string text = value.is_null() ? "none" : value.is_string() ? value.get<std::string>() : value.dump();
    const std::string part = fmt::format("{} on host {}", text, pe["host"].get<std::string>());
    if (std::find(parts.begin(), parts.end(), part) == parts.end()) parts.push_back(part);
    differ = differ || value != *first;
  }
  return differ ? fmt::format("{}", fmt::join(parts, ", ")) : "";
}

}  // namespace

Json gather_hosts(Placement& place, double timeout_s) {
  bootstrap::WorldMember member(place.id, place.pe, place.pes, timeout_s);
  Writer own;
  own.text(facts_of_process(member.address()).dump());
  own.text(place.pe == 0 ? UniqueId::create(member.address()).text() : "");
  Json pes = Json::array();
  for (const Bytes& blob : member.all_gather(own.result(), "hosts")) {
    Reader reader(blob);
    pes.push_back(Json::parse(reader.text()));
    const std::string id = reader.text();
    if (!id.empty()) place.id = UniqueId::from_text(id);
  }
  member.barrier("all know the hosts");
  return pes;
}

void compare_hosts(const Json& pes, std::vector<Finding>& findings) {
  struct Compared {
    const char* key;
    const char* name;
    const char* advice;
    bool known;
  };
  // An address may be a name, or one that other hosts see, and then it has no interface here.
  constexpr std::array<Compared, 4> all{{
      {"mtu", "the MTU differs", "give the interfaces one MTU: packets that are too large for one of them may be lost",
       true},
      {"libfabric", "the version of libfabric differs", "install the same version on all hosts", false},
      {"provider", "the provider of libfabric differs", "set TANDEM_FABRIC alike on all hosts", false},
      {"seal", "TANDEM_SEAL differs", "set it alike on all hosts", false},
  }};
  for (const Compared& one : all)
    if (const std::string text = differences(pes, one.key, one.known); !text.empty())
      findings.push_back({true, fmt::format("{}: {}", one.name, text), one.advice});
}

}  // namespace tandem::cli
