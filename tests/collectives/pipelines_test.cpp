// Large collectives of four PEs as pipelines, by simulated time. All work that the link can hide is hidden, and no link
// waits for another one's copies.

#include <gtest/gtest.h>

#include <algorithm>

#include "collectives/steps/reduce_ring_steps.h"
#include "tandem/collectives.h"
#include "tandem/simulation.h"

namespace tandem::test {
namespace {

constexpr int kPes = 4;
constexpr const char* kMachine = "h200x4-calibrated";

/// Microseconds of a call among calls back to back.
double broadcast_us(const char* algorithm, Size bytes, int blocks, bool in_place, int calls = 4) {
  SimOptions sim;
  sim.phantom = true;
  sim.heap_bytes = Size{8} << 30;
  Simulation simulation(load_machine(kMachine), kPes, sim);
  double us = 0;
  simulation.run([&](World& world) {
    CollectiveOptions options;
    options.type = DType::kU8;
    options.algorithm = algorithm;
    options.blocks = blocks;
    options.max_count = bytes;
    const auto plan = make_collective(world, Collective::kBroadcast, options);
    const auto in = world.heap().allocate<std::byte>(bytes, "in");
    const auto out = world.heap().allocate<std::byte>(bytes, "out");
    Stream stream = world.make_stream("main");
    const double begin = world.time_us();
    for (int i = 0; i < calls; ++i) plan->run(stream, in_place ? out : in, out, bytes);
    stream.synchronize();
    us = std::max(us, (world.time_us() - begin) / calls);
  });
  return us;
}

TEST(Pipelines, RootOfAChainKeepsItsBytesWhileItSends) {
  constexpr Size bytes = Size{64} << 20;
  const double in_place = broadcast_us("chain", bytes, 128, true);
  EXPECT_LT(broadcast_us("chain", bytes, 128, false), 1.03 * in_place);
}

TEST(Pipelines, ACallOfAChainBeginsWhileTheLastOneEnds) {
  constexpr Size bytes = Size{32} << 20;
  const double alone = broadcast_us("chain", bytes, 128, true, 1);
  const double next = (4 * broadcast_us("chain", bytes, 128, true, 4) - alone) / 3;
  const double link_us = static_cast<double>(bytes) / (load_machine(kMachine).link.store_gbps.at(128) * 1e3);
  EXPECT_LT(next, 1.05 * link_us);
}

TEST(Pipelines, NoTwoCopiesOfABroadcastMeetAtAPe) {
  constexpr Size bytes = Size{512} << 20;
  const double link_us = static_cast<double>(bytes) / (load_machine(kMachine).gpu.copy_engine_gbps * 1e3);
  EXPECT_LT(broadcast_us("copy_engine", bytes, 16, false), 1.2 * link_us);
}

/// A block, as far as the number of pieces needs one.
struct PlacedBlock {
  Team placed;
  const Team& team() const { return placed; }
};

TEST(Pipelines, RingsOfMoreThanTwoPesAnnounceWholeChunks) {
  const PlacedBlock in_node{{.size = 4, .node_size = 4}}, between_nodes{{.size = 4, .node_size = 2}};
  EXPECT_EQ(kernels::ring_chunks(in_node, 2, Size{1} << 20), 4);
  EXPECT_EQ(kernels::ring_chunks(in_node, 2, Size{40} << 10), 2);
  EXPECT_EQ(kernels::ring_chunks(in_node, 2, 0), 1);
  EXPECT_EQ(kernels::ring_chunks(in_node, 3, Size{1} << 20), 1);
  EXPECT_EQ(kernels::ring_chunks(between_nodes, 2, Size{1} << 20), 1);
}

}  // namespace
}  // namespace tandem::test
