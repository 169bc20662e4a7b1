// The links between the processes of a job, which `tandem launch`, srun or torchrun has started.
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdlib>
#include <nlohmann/json.hpp>

#include "tandem/worlds.h"
#include "tools/tandem/doctor/doctor.h"

namespace tandem::cli {
namespace {

using Json = nlohmann::ordered_json;

constexpr Size kCopied = Size{8} << 20;
constexpr int kRounds = 5;

/// One PE's view of another.
struct Link {
  double us = 0;    ///< of a write of 4 bytes with its answer
  double gbps = 0;  ///< of a large write
};
using HostName = std::array<char, 64>;

double best_us(World& world, std::byte* to, const std::vector<std::byte>& from) {
  double best = 1e30;
  for (int round = 0; round < kRounds; ++round) {
    const auto begin = std::chrono::steady_clock::now();
    world.copy_in(to, from.data(), static_cast<Size>(from.size()));
    best = std::min(best, std::chrono::duration<double, std::micro>(std::chrono::steady_clock::now() - begin).count());
  }
  return best;
}

/// PEs measure one after the other. Each writes its links to PE 0.
void measure(World& world, Symm<std::byte> data, Symm<Link> links) {
  const std::vector<std::byte> small(4), large(static_cast<std::size_t>(kCopied));
  for (int from = 0; from < world.num_pes(); ++from) {
    for (int to = 0; from == world.pe() && to < world.num_pes(); ++to) {
      if (to == from) continue;
      const Link link{best_us(world, data.on(to), small),
                      static_cast<double>(kCopied) / best_us(world, data.on(to), large) * 1e-3};
      world.copy_in(links.on(0) + from * world.num_pes() + to, &link, Size{sizeof link});
    }
    world.barrier();
  }
}

HostName own_host() {
  HostName name{};
  const char* const given = std::getenv("TANDEM_HOST");
  if (given != nullptr)
    std::copy_n(given, std::min(std::string_view(given).size(), name.size() - 1), name.begin());
  else
    ::gethostname(name.data(), name.size() - 1);
  return name;
}

}  // namespace

Json inspect_processes() {
  WorldOptions options;
  options.kind = DeviceKind::kHost;
  options.heap_bytes = 2 * kCopied;
  WorldProcess process(placement_from_environment(), options);
  World& world = process.world();
  const int pes = world.num_pes();
  const auto data = world.heap().allocate<std::byte>(kCopied, "data");
  const auto links = world.heap().allocate<Link>(Size{pes} * pes, "links");
  const auto hosts = world.heap().allocate<HostName>(pes, "hosts");
  const HostName own = own_host();
  world.copy_in(hosts.on(0) + world.pe(), &own, Size{sizeof own});
  measure(world, data, links);
  if (world.pe() != 0) return nullptr;
  Json report;
  report["pes"] = Json::array();
  report["pe_links"] = Json::array();
  for (int from = 0; from < pes; ++from) {
    report["pes"].push_back({{"host", hosts.local()[from].data()}, {"node", from / world.team().node_size}});
    for (int to = 0; to < pes; ++to) {
      const Link& link = links.local()[from * pes + to];
      if (to != from) report["pe_links"].push_back({{"from", from}, {"to", to}, {"gbps", link.gbps}, {"us", link.us}});
    }
  }
  return report;
}

}  // namespace tandem::cli
