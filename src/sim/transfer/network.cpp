#include "sim/transfer/network.h"

#include <fmt/format.h>

#include <algorithm>

#include "tandem/error.h"

namespace tandem::sim {

namespace {
/// More blocks than any curve has, so that the port's limit applies.
constexpr double kAllBlocks = 1e9;
}  // namespace

Network::Network(const Topology& topology, const Machine& machine, int pes)
    : topology_(topology),
      resources_(topology.resources().size() + static_cast<std::size_t>(pes)),
      busy_(resources_.size()),
      first_memory_(topology.resources().size()),
      memory_(machine.gpu.hbm_gbps),
      local_copy_(machine.gpu.copy_engine_local_gbps),
      all_to_all_(machine.link.all_to_all_efficiency),
      message_gap_(machine.nic.message_rate_mps > 0 ? from_us(1.0 / machine.nic.message_rate_mps) : 0) {
  const auto limit = [&](Driver driver, double gbps) { limit_[static_cast<int>(driver)] = gbps; };
  limit(Driver::kStores, machine.link.store_gbps.at(kAllBlocks));
  limit(Driver::kLoads, machine.link.load_gbps.at(kAllBlocks));
  limit(Driver::kCopyEngine, machine.gpu.copy_engine_gbps);
  limit(Driver::kNic, machine.nic.count_per_node > 0 ? machine.nic.gbps : machine.link.port_gbps);
  for (const Resource& resource : topology.resources()) gbps_.push_back(resource.gbps);
}

Passage Network::pass(int from, int to, Size bytes, Driver driver, Time ready, const Issuer& issuer) {
  if (from == to) {
    // Bytes read or written by threads count once; a copy engine's local copy has a rate of its own.
    const Rate rate = driver == Driver::kCopyEngine ? local_copy_ : memory_;
    const Time sent = reserve(first_memory_ + static_cast<std::size_t>(from), bytes, rate.time(bytes), ready);
    return {ready, sent, sent, sent};
  }
  const Path path = topology_.path(from, to);
  const bool over_links = path.kind == PathKind::kLink;
  const std::span<const int> passed = path.resources();
  Time sent = ready;
  Time through = ready;
  for (std::size_t i = 0; i < passed.size(); ++i) {
    const auto resource = static_cast<std::size_t>(passed[i]);
    const bool first = i == 0;
    double gbps = over_links ? std::min(gbps_[resource], limit_[static_cast<int>(driver)]) : gbps_[resource];
    // A port that serves several peers at once loses some of its rate to switching between them.
    const int peer = first ? to : from;
    State& state = resources_[resource];
    if (over_links && state.free > ready && state.last_peer != peer && state.last_peer >= 0) gbps *= all_to_all_;
    state.last_peer = peer;
    Time took = Rate(gbps).time(bytes);
    const bool is_nic = path.kind == PathKind::kNic && (first || i + 1 == passed.size());
    if (is_nic) took = std::max(took, message_gap_);
    const Time end = reserve(resource, bytes, took, ready);
    if (watch && (is_nic || path.kind != PathKind::kNic))  // the spine between NICs has no lane
      watch({passed[i], first ? from : to, is_nic, first, end - took, end, bytes, issuer});
    through = std::max(through, end);
    if (first) sent = through;
  }
  return {ready, sent, through, through + path.latency_ps};
}

Time Network::latency(int from, int to) const { return topology_.path(from, to).latency_ps; }

Time Network::reserve(std::size_t resource, Size bytes, Time took, Time ready) {
  State& state = resources_[resource];
  state.free = std::max(state.free, ready) + took;
  state.bytes += bytes;
  busy_[resource] += took;
  return state.free;
}

void Network::check_all_moved(Time end) const {
  constexpr double kRounding = 1.001;  // chunks take whole picoseconds
  const Rate memory = std::max(memory_, local_copy_);
  for (std::size_t i = 0; i < resources_.size(); ++i) {
    const State& state = resources_[i];
    const bool is_memory = i >= first_memory_;
    const auto least = static_cast<double>((is_memory ? memory : Rate(gbps_[i])).time(state.bytes));
    if (state.free <= end && least <= static_cast<double>(end) * kRounding) continue;
    const std::string name =
        is_memory ? fmt::format("memory of PE {}", i - first_memory_) : topology_.resources()[i].name;
    throw RuntimeFailure(fmt::format(
        "simulator: {} moved {} bytes, which takes {:.3f} us and ends at {:.3f} us, but the run ended at {:.3f} us",
        name, state.bytes, least * 1e-6, to_us(state.free), to_us(end)));
  }
}

}  // namespace tandem::sim
