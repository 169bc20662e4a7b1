#include "machine/topology.h"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "tandem/error.h"

namespace tandem {
namespace {

std::int64_t picoseconds(double us) { return std::llround(us * 1e6); }

}  // namespace

Topology::Topology(const Machine& machine, int num_pes, int pes_per_node)
    : num_pes_(num_pes),
      pes_per_node_(pes_per_node),
      virtual_nodes_(false),
      pes_per_host_(0),
      fabric_(machine.link.fabric),
      numa_nodes_(machine.link.numa_nodes),
      nics_(machine.nic.count_per_node),
      link_ps_(picoseconds(machine.link.latency_us)),
      bridge_ps_(picoseconds(machine.link.bridge_latency_us)),
      nic_ps_(picoseconds(machine.nic.latency_us)),
      cross_rail_ps_(picoseconds(machine.nic.cross_rail_latency_us)) {
  check(machine, pes_per_node);
  const bool one_host = machine.max_nodes == 1;
  if (pes_per_node == 0) pes_per_node_ = one_host ? num_pes : machine.pes_per_node;
  virtual_nodes_ = one_host && pes_per_node_ < num_pes;
  pes_per_host_ = one_host ? std::max(num_pes, machine.pes_per_node) : pes_per_node_;
  if (fabric_ == Fabric::kFullMesh)
    add_mesh(machine);
  else
    add_ports(machine);
  add_bridges(machine);
  add_nics(machine);
  add_spine(machine);
}

void Topology::check(const Machine& machine, int pes_per_node) const {
  const bool one_host = machine.max_nodes == 1;
  const int largest_node = one_host ? max_pes_of_one_node : machine.pes_per_node;
  if (pes_per_node < 0 || pes_per_node > largest_node)
    throw InvalidArgument(
        fmt::format("PEs per node: {} given, allowed on {} is 1 to {}", pes_per_node, machine.name, largest_node));
  const Size node = pes_per_node > 0 ? pes_per_node : machine.pes_per_node;
  const Size most = one_host ? max_pes_of_one_node : node * machine.max_nodes;
  if (num_pes_ < 1 || num_pes_ > most)
    throw InvalidArgument(fmt::format("PEs: {} given, allowed on {} is 1 to {}{}", num_pes_, machine.name, most,
                                      one_host ? ", as many as one fabric is simulated for" : ""));
  const bool whole_nodes = !one_host || pes_per_node > 0;
  if (whole_nodes && num_pes_ % node != 0)
    throw InvalidArgument(
        fmt::format("PEs: {} given, allowed on {} is a number that fills whole nodes, a multiple of {}", num_pes_,
                    machine.name, node));
}

int Topology::add(std::string name, double gbps) {
  resources_.push_back({std::move(name), gbps});
  return static_cast<int>(resources_.size()) - 1;
}

void Topology::add_ports(const Machine& machine) {
  first_port_ = static_cast<int>(resources_.size());
  for (int pe = 0; pe < num_pes_; ++pe) {
    add(fmt::format("link out pe {}", pe), machine.link.port_gbps);
    add(fmt::format("link in pe {}", pe), machine.link.port_gbps);
  }
}

/// Makes one link for each ordered pair of a host's PEs. The entries (i, i) are unused and keep the numbering simple.
void Topology::add_mesh(const Machine& machine) {
  first_mesh_ = static_cast<int>(resources_.size());
  const int host_size = virtual_nodes_ ? num_pes_ : pes_per_node_;
  for (int from = 0; from < num_pes_; ++from)
    for (int to = 0; to < host_size; ++to)
      add(fmt::format("mesh {}->{}", from, host_of(from) * host_size + to), machine.link.port_gbps);
}

void Topology::add_bridges(const Machine& machine) {
  first_bridge_ = static_cast<int>(resources_.size());
  if (numa_nodes_ == 1) return;
  const int hosts = virtual_nodes_ ? 1 : nodes();
  for (int host = 0; host < hosts; ++host)
    for (int from = 0; from < numa_nodes_; ++from)
      for (int to = 0; to < numa_nodes_; ++to)
        add(fmt::format("bridge {}->{} of node {}", from, to, host), machine.link.bridge_gbps);
}

void Topology::add_nics(const Machine& machine) {
  first_nic_ = static_cast<int>(resources_.size());
  for (int node = 0; node < nodes() && nics_ > 0; ++node)
    for (int nic = 0; nic < nics_; ++nic) {
      add(fmt::format("nic {} of node {} out", nic, node), machine.nic.gbps);
      add(fmt::format("nic {} of node {} in", nic, node), machine.nic.gbps);
    }
}

/// All NICs of a rail connect to one leaf switch. Traffic to other rails shares the leaf's links to the spine. These
/// links are left out if they carry all that the NICs send.
void Topology::add_spine(const Machine& machine) {
  first_spine_ = static_cast<int>(resources_.size());
  has_spine_ = nics_ > 0 && nodes() > 1 && machine.nic.cross_rail_share < 1;
  const double gbps = nodes() * machine.nic.gbps * machine.nic.cross_rail_share;
  for (int rail = 0; rail < nics_ && has_spine_; ++rail) {
    add(fmt::format("spine from rail {}", rail), gbps);
    add(fmt::format("spine to rail {}", rail), gbps);
  }
}

/// The PEs of a host are divided among its sockets in equal consecutive groups.
int Topology::socket_of(int pe) const {
  const int on_host = virtual_nodes_ ? pe : local_index(pe);
  return on_host * numa_nodes_ / pes_per_host_;
}

Path Topology::path(int source, int destination) const {
  for (const int pe : {source, destination})
    if (pe < 0 || pe >= num_pes_)
      throw InvalidArgument(fmt::format("path: PE {} given, allowed is 0 to {}", pe, num_pes_ - 1));
  if (source == destination) return {};
  return host_of(source) == host_of(destination) ? link_path(source, destination) : nic_path(source, destination);
}

Path Topology::link_path(int source, int destination) const {
  Path path;
  path.kind = same_node(source, destination) ? PathKind::kLink : PathKind::kVirtualLink;
  path.latency_ps = link_ps_;
  if (fabric_ == Fabric::kFullMesh) {
    const int host_size = virtual_nodes_ ? num_pes_ : pes_per_node_;
    path.add(first_mesh_ + source * host_size + destination % host_size);
  } else {
    path.add(first_port_ + 2 * source);
    const int from = socket_of(source);
    const int to = socket_of(destination);
    if (from != to) {
      path.add(first_bridge_ + (host_of(source) * numa_nodes_ + from) * numa_nodes_ + to);
      path.latency_ps += bridge_ps_;
    }
    path.add(first_port_ + 2 * destination + 1);
  }
  finish(path);
  return path;
}

Path Topology::nic_path(int source, int destination) const {
  Path path;
  path.kind = PathKind::kNic;
  path.latency_ps = nic_ps_;
  path.add(first_nic_ + 2 * (node_of(source) * nics_ + rail_of(source)));
  const int from = rail_of(source);
  const int to = rail_of(destination);
  if (from != to) path.latency_ps += cross_rail_ps_;
  if (from != to && has_spine_) {
    path.add(first_spine_ + 2 * from);
    path.add(first_spine_ + 2 * to + 1);
  }
  const int node = folded_nodes_ > 0 ? node_of(destination) % folded_nodes_ : node_of(destination);
  path.add(first_nic_ + 2 * (node * nics_ + to) + 1);
  finish(path);
  return path;
}

void Topology::finish(Path& path) const {
  double least = resources_[static_cast<std::size_t>(path.resources().front())].gbps;
  for (const int id : path.resources()) least = std::min(least, resources_[static_cast<std::size_t>(id)].gbps);
  path.gbps = least;
}

}  // namespace tandem
