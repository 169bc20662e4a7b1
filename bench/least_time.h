#pragma once
/// Lower bounds of the times of collectives between nodes, for every algorithm.

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

/// Returns the microseconds that a collective takes at least between nodes. The bytes that a node has to send or to
/// receive pass its NICs, and the last of them has the NICs' latency. Returns 0 if nothing has to leave a node.
inline double least_us(const Machine& machine, const CollectiveCase& c) {
  const int nodes = static_cast<int>(ceil_div(c.pes, machine.pes_per_node));
  if (nodes < 2 || c.pes % machine.pes_per_node != 0 || machine.nic.count_per_node < 1) return 0;
  const double bytes = least_bytes_of_a_node(c, nodes, machine.pes_per_node);
  if (bytes <= 0) return 0;
  // No algorithm relays what a PE sends to one PE, or a root's bytes, so these pass that PE's own NIC.
  const bool is_one_pes = c.collective == Collective::kSendRecv || traits(c.collective).has_root();
  const int nics = is_one_pes ? 1 : machine.nic.count_per_node;
  const double nics_gbps = machine.nic.gbps * nics;
  constexpr double bytes_per_us_of_a_gbps = 1000;
  return machine.nic.latency_us + bytes / (nics_gbps * bytes_per_us_of_a_gbps);
}

}  // namespace tandem::bench
