#include "machine/topology.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tandem/error.h"

namespace tandem {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::vector<std::string> names(const Topology& topology, const Path& path) {
  std::vector<std::string> result;
  for (const int id : path.resources()) result.push_back(topology.resources().at(static_cast<std::size_t>(id)).name);
  return result;
}

std::string refusal(const Machine& machine, int pes, int pes_per_node = 0) {
  try {
    const Topology topology(machine, pes, pes_per_node);
  } catch (const InvalidArgument& error) {
    return error.what();
  }
  return "accepted";
}

TEST(Topology, SwitchedNodeHasOnePortForEachDirection) {
  const Machine machine = load_machine("h200x4");
  const Topology topology(machine, 4);
  EXPECT_EQ(topology.nodes(), 1);
  EXPECT_EQ(topology.resources().size(), 8u);
  EXPECT_TRUE(topology.reachable(0, 3));
  EXPECT_EQ(topology.rail_of(2), -1);

  const Path path = topology.path(3, 1);
  EXPECT_EQ(path.kind, PathKind::kLink);
  EXPECT_THAT(names(topology, path), ElementsAre("link out pe 3", "link in pe 1"));
  EXPECT_EQ(path.latency_ps, 760'000);
  EXPECT_DOUBLE_EQ(path.gbps, machine.link.port_gbps);
}

TEST(Topology, WithinOnePeNothingIsReserved) {
  const Topology topology(load_machine("h200x4"), 4);
  const Path path = topology.path(2, 2);
  EXPECT_EQ(path.kind, PathKind::kLocal);
  EXPECT_TRUE(path.resources().empty());
  EXPECT_EQ(path.latency_ps, 0);
}

TEST(Topology, OneNodeTakesFewerAndMorePes) {
  const Machine machine = load_machine("h200x4");
  for (const int pes : {1, 2, 3, 9, Topology::max_pes_of_one_node}) {
    const Topology topology(machine, pes);
    EXPECT_EQ(topology.nodes(), 1) << pes;
    EXPECT_TRUE(topology.reachable(0, pes - 1)) << pes;
  }
  EXPECT_THAT(refusal(machine, 1025), HasSubstr("PEs: 1025 given, allowed on h200x4 is 1 to 1024"));
  EXPECT_THAT(refusal(machine, 0), HasSubstr("PEs: 0 given"));
}

TEST(Topology, MeshHasOneLinkForEachOrderedPair) {
  const Machine machine = load_machine("mi300x8");
  const Topology topology(machine, 8);
  EXPECT_THAT(names(topology, topology.path(3, 5)), ElementsAre("mesh 3->5"));
  EXPECT_THAT(names(topology, topology.path(5, 3)), ElementsAre("mesh 5->3"));
  EXPECT_DOUBLE_EQ(topology.path(0, 7).gbps, 48);
  const Topology nine(machine, 9);
  EXPECT_THAT(names(nine, nine.path(8, 0)), ElementsAre("mesh 8->0"));
}

TEST(Topology, PcieCrossesTheBridgeBetweenSockets) {
  const Machine machine = load_machine("pcie-2numa");
  const Topology topology(machine, 8);
  EXPECT_THAT(names(topology, topology.path(0, 3)), ElementsAre("link out pe 0", "link in pe 3"));
  const Path across = topology.path(6, 1);
  EXPECT_THAT(names(topology, across), ElementsAre("link out pe 6", "bridge 1->0 of node 0", "link in pe 1"));
  EXPECT_EQ(across.latency_ps, 1'130'000);
  EXPECT_DOUBLE_EQ(across.gbps, machine.link.bridge_gbps);

  // Four PEs of the same host sit at its first socket.
  const Topology half(machine, 4);
  EXPECT_THAT(names(half, half.path(0, 3)), ElementsAre("link out pe 0", "link in pe 3"));
}

TEST(Topology, NodesAreJoinedByTheRailOfTheLocalIndex) {
  const Machine machine = load_machine("h100x8-rail");
  const Topology topology(machine, 16);
  EXPECT_EQ(topology.nodes(), 2);
  EXPECT_EQ(topology.node_of(11), 1);
  EXPECT_EQ(topology.local_index(11), 3);
  EXPECT_EQ(topology.pe_at(1, 3), 11);
  EXPECT_FALSE(topology.reachable(3, 11));
  EXPECT_TRUE(topology.reachable(8, 11));

  const Path same = topology.path(3, 11);
  EXPECT_EQ(same.kind, PathKind::kNic);
  EXPECT_THAT(names(topology, same), ElementsAre("nic 3 of node 0 out", "nic 3 of node 1 in"));
  EXPECT_EQ(same.latency_ps, 8'350'000);
  EXPECT_DOUBLE_EQ(same.gbps, machine.nic.gbps);

  const Path cross = topology.path(3, 12);
  EXPECT_THAT(names(topology, cross), ElementsAre("nic 3 of node 0 out", "nic 4 of node 1 in"));
  EXPECT_EQ(cross.latency_ps, 8'910'000);
  EXPECT_DOUBLE_EQ(cross.gbps, machine.nic.gbps);
}

TEST(Topology, RailsOfATaperedNetworkShareTheSpine) {
  Machine machine = load_machine("h100x8-rail");
  machine.nic.cross_rail_share = 0.5;
  const Topology topology(machine, 4 * 8);
  const Path cross = topology.path(3, 12);
  EXPECT_THAT(names(topology, cross),
              ElementsAre("nic 3 of node 0 out", "spine from rail 3", "spine to rail 4", "nic 4 of node 1 in"));
  // Two NICs of four fill the spine; one alone has its full rate.
  EXPECT_DOUBLE_EQ(topology.resources()[static_cast<std::size_t>(cross.resources()[1])].gbps, 2 * machine.nic.gbps);
  EXPECT_DOUBLE_EQ(cross.gbps, machine.nic.gbps);
  EXPECT_THAT(names(topology, topology.path(3, 11)), ElementsAre("nic 3 of node 0 out", "nic 3 of node 1 in"));
}

TEST(Topology, PesMustFillWholeNodes) {
  const Machine machine = load_machine("h100x8-rail");
  EXPECT_THAT(refusal(machine, 12),
              HasSubstr("PEs: 12 given, allowed on h100x8-rail is a number that fills whole nodes, a multiple of 8"));
  EXPECT_THAT(refusal(machine, 8 * 1025), HasSubstr("allowed on h100x8-rail is 1 to 8192"));
  EXPECT_THAT(refusal(machine, 18, 9), HasSubstr("PEs per node: 9 given, allowed on h100x8-rail is 1 to 8"));
  EXPECT_THAT(refusal(machine, 8, -1), HasSubstr("PEs per node: -1 given"));
  EXPECT_EQ(Topology(machine, 1024).nodes(), 128);
}

TEST(Topology, NodesMayBeUsedInPart) {
  const Topology topology(load_machine("h100x8-rail"), 9, 3);
  EXPECT_EQ(topology.nodes(), 3);
  EXPECT_FALSE(topology.virtual_nodes());
  EXPECT_THAT(names(topology, topology.path(2, 8)), ElementsAre("nic 2 of node 0 out", "nic 2 of node 2 in"));
}

TEST(Topology, VirtualNodesShareTheHostsLinks) {
  const Topology topology(load_machine("h200x4"), 4, 2);
  EXPECT_TRUE(topology.virtual_nodes());
  EXPECT_EQ(topology.nodes(), 2);
  EXPECT_TRUE(topology.reachable(0, 1));
  EXPECT_FALSE(topology.reachable(1, 2));
  const Path path = topology.path(1, 2);
  EXPECT_EQ(path.kind, PathKind::kVirtualLink);
  EXPECT_THAT(names(topology, path), ElementsAre("link out pe 1", "link in pe 2"));
  EXPECT_THAT(refusal(load_machine("h200x4"), 5, 2), HasSubstr("whole nodes, a multiple of 2"));

  const Topology mesh(load_machine("mi300x8"), 8, 4);
  EXPECT_THAT(names(mesh, mesh.path(1, 6)), ElementsAre("mesh 1->6"));
}

TEST(Topology, PathRefusesPesThatAreNotThere) {
  const Topology topology(load_machine("h200x4"), 4);
  EXPECT_THROW(topology.path(0, 4), InvalidArgument);
  EXPECT_THROW(topology.path(-1, 0), InvalidArgument);
}

TEST(Topology, EveryPathUsesResourcesOfItsEnds) {
  for (const std::string& name : machine_names()) {
    const Machine machine = load_machine(name);
    const Topology topology(machine, machine.pes_per_node * machine.default_nodes);
    for (int from = 0; from < topology.num_pes(); ++from)
      for (int to = 0; to < topology.num_pes(); ++to) {
        if (from == to) continue;
        const Path path = topology.path(from, to);
        EXPECT_GT(path.gbps, 0) << name;
        EXPECT_GT(path.latency_ps, 0) << name;
        EXPECT_EQ(path.kind == PathKind::kLink, topology.reachable(from, to)) << name;
      }
  }
}

}  // namespace
}  // namespace tandem
