// The links between the processes of a job, which `tandem launch`, srun or torchrun has started.
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <nlohmann/json.hpp>

#include "tandem/error.h"
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

}  // namespace

Json inspect_processes(std::vector<Finding>& findings) {
  WorldOptions options;
  options.kind = DeviceKind::kHost;
  options.heap_bytes = 2 * kCopied;
  Placement place = placement_from_environment();
  Json report{{"pes", gather_hosts(place, options.join_timeout_s)}, {"pe_links", Json::array()}};
  compare_hosts(report["pes"], findings);
  try {
    WorldProcess process(place, options);
    World& world = process.world();
    const int pes = world.num_pes();
    const auto data = world.heap().allocate<std::byte>(kCopied, "data");
    const auto links = world.heap().allocate<Link>(Size{pes} * pes, "links");
    measure(world, data, links);
    for (int from = 0; world.pe() == 0 && from < pes; ++from) {
      report["pes"][static_cast<std::size_t>(from)]["node"] = from / world.team().node_size;
      for (int to = 0; to < pes; ++to) {
        const Link& link = links.local()[from * pes + to];
        if (to != from)
          report["pe_links"].push_back({{"from", from}, {"to", to}, {"gbps", link.gbps}, {"us", link.us}});
      }
    }
  } catch (const Error& error) {
    findings.push_back(
        {true, fmt::format("the processes make no world: {}", error.what()), "see the other findings, and the text"});
  }
  return place.pe == 0 ? report : Json();
}

}  // namespace tandem::cli
