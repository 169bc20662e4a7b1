#pragma once
/// The nodes of a world: equally many consecutive PEs each, which reach each other by loads and stores.

#include <string>
#include <vector>

namespace tandem::world {

/// The host on which a PE runs.
struct HostOfPe {
  std::string id;    ///< the same for PEs that can share memory
  std::string name;  ///< for errors
};

/// Returns the number of PEs on each host. Throws InvalidArgument, with the PEs of each host, unless the PEs of a host
/// are consecutive and every host has as many.
int pes_per_host(const std::vector<HostOfPe>& hosts);

/// Returns the number of PEs of a node, on hosts of `pes_of_host` PEs. TANDEM_NODE_SIZE in the environment cuts a host
/// into virtual nodes; without it a host is one node. Throws InvalidArgument if the variable does not divide the PEs.
int node_size_of(int pes_of_host);

}  // namespace tandem::world
