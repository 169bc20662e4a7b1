#pragma once
/// The placement of PEs in nodes, their reachability, and the shared resources on the path of a transfer.
///
/// A run may use a part of a machine's nodes, or split nodes: `pes_per_node` sets the size of a node. On a one-node
/// machine the parts are virtual nodes. Loads and stores do not cross them, and puts between them use the node's own
/// links. A one-node machine may be asked for up to `max_pes_of_one_node` PEs, also above its model's number. It is
/// then the same fabric with more ports.

#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "tandem/machine.h"

namespace tandem {

/// A port, link or NIC in one direction. Transfers through it share its bandwidth.
struct Resource {
  std::string name;  ///< "link out pe 3", "link in pe 5", "nic 2 of node 1 out", "spine from rail 2",
                     ///< "mesh 3->5", "bridge 0->1 of node 0"
  double gbps = 0;
};

/// The kind of path of a transfer between two PEs.
enum class PathKind {
  kLocal,        ///< within one PE: no resource
  kLink,         ///< load and store over the node's links
  kVirtualLink,  ///< puts between virtual nodes over the same links
  kNic,          ///< puts between nodes
};

/// The resources that a transfer reserves, and the delay until its last byte is visible.
class Path {
 public:
  PathKind kind = PathKind::kLocal;
  std::int64_t latency_ps = 0;
  double gbps = 0;  ///< the smallest rate of the resources; 0 for kLocal

  /// Numbers of resources in Topology::resources(), in the order in which bytes pass them.
  std::span<const int> resources() const { return {ids_.data(), count_}; }
  void add(int resource) { ids_[count_++] = resource; }

 private:
  std::array<int, 4> ids_{};
  std::size_t count_ = 0;
};

class Topology {
 public:
  static constexpr int max_pes_of_one_node = 1024;

  /// `pes_per_node` 0 takes the machine's number. Throws InvalidArgument if `num_pes` is not positive or too large. It
  /// also throws if several nodes or split nodes are not filled completely.
  Topology(const Machine& machine, int num_pes, int pes_per_node = 0);

  int num_pes() const { return num_pes_; }
  int pes_per_node() const { return pes_per_node_; }
  int nodes() const { return num_pes_ / pes_per_node_; }
  /// Returns whether the nodes are parts of one host.
  bool virtual_nodes() const { return virtual_nodes_; }

  int node_of(int pe) const { return pe / pes_per_node_; }
  int local_index(int pe) const { return pe % pes_per_node_; }
  int pe_at(int node, int local) const { return node * pes_per_node_ + local; }
  bool same_node(int a, int b) const { return node_of(a) == node_of(b); }
  /// Returns whether `a` can load from and store to `b`.
  bool reachable(int a, int b) const { return same_node(a, b); }

  /// Returns the NIC that a PE uses, numbered within its node, or -1 if there is none.
  int rail_of(int pe) const { return nics_ == 0 ? -1 : local_index(pe) % nics_; }

  /// Makes paths to other nodes end at the first `nodes` ones, which stand for all.
  void fold(int nodes) { folded_nodes_ = nodes; }

  const std::vector<Resource>& resources() const { return resources_; }
  /// Throws InvalidArgument for PEs outside [0, num_pes).
  Path path(int source, int destination) const;

 private:
  void check(const Machine& machine, int pes_per_node) const;
  void add_ports(const Machine& machine);
  void add_mesh(const Machine& machine);
  void add_bridges(const Machine& machine);
  void add_nics(const Machine& machine);
  void add_spine(const Machine& machine);
  int add(std::string name, double gbps);
  Path link_path(int source, int destination) const;
  Path nic_path(int source, int destination) const;
  int host_of(int pe) const { return virtual_nodes_ ? 0 : node_of(pe); }
  int socket_of(int pe) const;
  void finish(Path& path) const;

  int num_pes_;
  int pes_per_node_;
  bool virtual_nodes_;
  int pes_per_host_;  // PEs that share links
  Fabric fabric_;
  int numa_nodes_;
  int nics_;
  int folded_nodes_ = 0;  // 0: paths end where they say
  std::int64_t link_ps_;
  std::int64_t bridge_ps_;
  std::int64_t nic_ps_;
  std::int64_t cross_rail_ps_;
  std::vector<Resource> resources_;
  // Numbers of the first resource of each kind.
  int first_port_ = 0;
  int first_mesh_ = 0;
  int first_bridge_ = 0;
  int first_nic_ = 0;
  int first_spine_ = 0;
  bool has_spine_ = false;
};

}  // namespace tandem
