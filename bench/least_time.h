#pragma once
/// Lower bounds of the times of collectives, for every algorithm of the library.

#include "simulated_call.h"
#include "tandem/advanced/collective_traits.h"

namespace tandem::bench {

/// Returns the bytes that have to pass into, or out of, some node on `nodes` nodes.
inline double least_bytes_of_a_node(const CollectiveCase& c, int nodes, int pes_per_node) {
  const auto bytes = static_cast<double>(c.bytes);
  const double of_others = bytes * (nodes - 1) / nodes;
  switch (c.collective) {
    case Collective::kAllReduce:  // the nodes' mean (Patarasuk and Yuan 2009)
      return 2 * of_others;
    case Collective::kAllGather:
    case Collective::kReduceScatter:
    case Collective::kGather:
    case Collective::kScatter:
      return of_others;
    case Collective::kAllToAll:
      return of_others * pes_per_node;
    case Collective::kBroadcast:  // the parts of all PEs but those of the root's node
      return bytes * (nodes - 1) * pes_per_node / (nodes * pes_per_node - 1);
    case Collective::kReduce:  // a tree: the root receives from two other nodes, if there are so many
      return nodes > 2 ? 2 * bytes : bytes;
    case Collective::kSendRecv:  // from a node's last PE to the next node
      return bytes;
    default:  // the pairs of exchange lie within nodes; others have no known bound
      return 0;
  }
}

/// Returns the bytes that have to pass a link within a node in one direction. The link is the busiest PE's port, or
/// that of a pair on a full mesh. Multicast, which GPUs of this version do not run, would need fewer.
inline double least_bytes_of_a_link(const CollectiveCase& c, bool is_mesh) {
  const auto bytes = static_cast<double>(c.bytes);
  const double part = bytes / c.pes;
  const double of_others = is_mesh ? part : part * (c.pes - 1);
  switch (c.collective) {
    case Collective::kAllReduce:  // the PEs' mean (Patarasuk and Yuan 2009)
      return 2 * of_others;
    case Collective::kAllGather:
    case Collective::kReduceScatter:
    case Collective::kAllToAll:
    case Collective::kGather:
    case Collective::kScatter:
      return of_others;
    case Collective::kBroadcast:  // all links of a PE of a mesh can share what it receives
    case Collective::kReduce:
      return is_mesh ? bytes / (c.pes - 1) : bytes;
    case Collective::kSendRecv:
    case Collective::kExchange:
      return bytes;
    default:  // a new collective has no known bound
      return 0;
  }
}

inline double us_of(double bytes, double gbps) {
  constexpr double bytes_per_us_of_a_gbps = 1000;
  return bytes / (gbps * bytes_per_us_of_a_gbps);
}

/// Returns the microseconds that a collective takes at least within a node, for the bytes that pass a link.
inline double least_us_of_links(const Machine& machine, const CollectiveCase& c) {
  if (machine.processor != Processor::kGpu || c.pes < 2) return 0;
  constexpr double all_blocks = 1e9;
  const double quickest = std::max(
      {machine.link.store_gbps.at(all_blocks), machine.link.load_gbps.at(all_blocks), machine.gpu.copy_engine_gbps});
  return us_of(least_bytes_of_a_link(c, machine.link.fabric == Fabric::kFullMesh),
               std::min(machine.link.port_gbps, quickest));
}

/// Returns the microseconds that a collective takes at least. Between nodes, the bytes that a node has to send or to
/// receive pass its NICs, and the last of them has the NICs' latency. Returns 0 if nothing has to leave a node.
inline double least_us(const Machine& machine, const CollectiveCase& c) {
  const int nodes = static_cast<int>(ceil_div(c.pes, machine.pes_per_node));
  if (nodes < 2) return least_us_of_links(machine, c);
  if (c.pes % machine.pes_per_node != 0 || machine.nic.count_per_node < 1) return 0;
  const double bytes = least_bytes_of_a_node(c, nodes, machine.pes_per_node);
  if (bytes <= 0) return 0;
  // No algorithm relays what a PE sends to one PE, or a root's bytes, so these pass that PE's own NIC.
  const bool is_one_pes = c.collective == Collective::kSendRecv || traits(c.collective).has_root();
  const int nics = is_one_pes ? 1 : machine.nic.count_per_node;
  return machine.nic.latency_us + us_of(bytes, machine.nic.gbps * nics);
}

}  // namespace tandem::bench
