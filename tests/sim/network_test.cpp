// Ports, bridges and NICs hold up all that move data over them.

#include "sim/transfer/network.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <string>

#include "sim/memory/memory.h"
#include "tandem/collectives.h"
#include "tandem/error.h"
#include "tandem/simulation.h"

namespace tandem {
namespace {

constexpr Size kLargeBytes = Size{256} << 20;

double microseconds(double bytes, double gbps) { return bytes / (gbps * 1e3); }

/// One call of a collective without data, of kLargeBytes a PE.
double collective_us(const Machine& machine, Collective collective, const std::string& algorithm, int pes) {
  SimOptions options;
  options.phantom = true;
  options.heap_bytes = Size{8} << 30;
  Simulation simulation(machine, pes, options);
  simulation.run([&](World& world) {
    CollectiveOptions call;
    call.type = DType::kBF16;
    call.algorithm = algorithm;
    const bool shared = collective == Collective::kReduceScatter;
    const Size count = kLargeBytes / size_of(call.type) / (shared ? pes : 1);
    call.max_count = count;
    const auto in = world.heap().allocate<std::byte>(kLargeBytes, "in");
    const auto out = world.heap().allocate<std::byte>(kLargeBytes, "out");
    const auto plan = make_collective(world, collective, call);
    Stream stream = world.make_stream("main");
    plan->run(stream, in, out, count);
    stream.synchronize();
  });
  return simulation.time_us();
}

TEST(Network, AReaderTakesNoMoreThanItsOwnPort) {
  const Machine machine = load_machine("h100x8");
  for (const int pes : {2, 4, 8})
    EXPECT_GE(collective_us(machine, Collective::kReduce, "direct", pes),
              microseconds(static_cast<double>(kLargeBytes) * (pes - 1), machine.link.port_gbps))
        << pes;
}

TEST(Network, ReadersOfAnotherSocketShareTheBridge) {
  const Machine machine = load_machine("pcie-2numa");
  // Four PEs of each socket read an eighth of four buffers behind the bridge.
  EXPECT_GE(collective_us(machine, Collective::kReduceScatter, "pull", 8),
            microseconds(2.0 * static_cast<double>(kLargeBytes), machine.link.bridge_gbps));
}

/// A kernel that ends with a store to the next PE.
struct LastStore {
  struct Args {
    Symm<float> to;
    Size count;
  };
  template <class Block>
  static void run(Block& block, const Args& a) {
    const float* const from = a.to.local();
    block.copy(a.to.on((block.pe() + 1) % block.num_pes()), from, a.count);
  }
};

TEST(Network, AKernelEndsWithItsLastStore) {
  const Machine machine = load_machine("h200x4");
  SimOptions options;
  options.phantom = true;
  Simulation simulation(machine, 2, options);
  simulation.run([](World& world) {
    constexpr Size count = 256;
    const auto to = world.heap().allocate<float>(count, "to");
    Stream stream = world.make_stream("main");
    stream.launch<LastStore>({1, 1024}, {to, count});
    stream.synchronize();
  });
  EXPECT_GE(simulation.time_us(), machine.gpu.graph_node_us + machine.link.latency_us);
}

/// Time of a copy to the next PE and one within the PE, in two streams.
double two_copies_us(Size to_peer, Size local) {
  SimOptions options;
  options.phantom = true;
  Simulation simulation(load_machine("h200x4"), 2, options);
  simulation.run([&](World& world) {
    const auto to = world.heap().allocate<std::byte>(kLargeBytes, "to");
    const auto from = world.heap().allocate<std::byte>(kLargeBytes, "from");
    Stream one = world.make_stream("one");
    Stream other = world.make_stream("other");
    one.copy_async(to.on(1 - world.pe()), from.local(), to_peer);
    other.copy_async(to.local(), from.local(), local);
    one.synchronize();
    other.synchronize();
  });
  return simulation.time_us();
}

TEST(Network, ACopyWithinAPeTakesNoCopyEngineFromThoseToPeers) {
  EXPECT_DOUBLE_EQ(two_copies_us(kLargeBytes, kLargeBytes), two_copies_us(kLargeBytes, 0));
}

struct NoWork {
  struct Args {};
  template <class Block>
  static void run(Block&, const Args&) {}
};

TEST(Costs, AKernelHasAStartAndAnEnd) {
  Machine machine = load_machine("h200x4");
  const auto us = [&] {
    Simulation simulation(machine, 1);
    simulation.run([](World& world) {
      Stream stream = world.make_stream("main");
      stream.launch<NoWork>({1, 32}, {});
      stream.synchronize();
    });
    return simulation.time_us();
  };
  const double before = us();
  machine.gpu.kernel_us += 2;
  EXPECT_NEAR(us(), before + 2, 1e-6);
}

TEST(Costs, SumsAndWaitsHaveRatesAndTimesOfTheirOwn) {
  const auto us = [](const Machine& machine) { return collective_us(machine, Collective::kAllReduce, "ring", 4); };
  Machine machine = load_machine("h200x4");
  const double before = us(machine);
  machine.gpu.reduce_gbps /= 10;
  EXPECT_GT(us(machine), before);
  machine = load_machine("h200x4");
  machine.gpu.block_sync_us += 10;
  EXPECT_GT(us(machine), before + 10);
}

TEST(Network, AFlowBetweenRailsHasTheFullRateUntilTheSpineIsFull) {
  Machine machine = load_machine("h100x8-rail");
  const auto us = [&](int flows) {
    const Topology topology(machine, 16);
    sim::Network network(topology, machine, 16);
    sim::Time last = 0;
    // Flows from rail 0 on both nodes to other rails of the other node.
    for (int flow = 0; flow < flows; ++flow)
      last =
          std::max(last, network.pass(8 * flow, 8 * (1 - flow) + 1 + flow, kLargeBytes, sim::Driver::kNic, 0).received);
    return sim::to_us(last);
  };
  const double alone = microseconds(static_cast<double>(kLargeBytes), machine.nic.gbps);
  EXPECT_NEAR(us(2), alone, 1);
  machine.nic.cross_rail_share = 0.5;
  EXPECT_NEAR(us(1), alone, 1);
  EXPECT_NEAR(us(2), 2 * alone, 1);
}

TEST(Network, SaysWhatMovedMoreThanItCan) {
  const Machine machine = load_machine("h200x4");
  const Topology topology(machine, 2);
  sim::Network network(topology, machine, 2);
  const sim::Passage passage = network.pass(0, 1, kLargeBytes, sim::Driver::kStores, 0);
  EXPECT_NO_THROW(network.check_all_moved(passage.received));
  try {
    network.check_all_moved(passage.received / 2);
    FAIL();
  } catch (const RuntimeFailure& failure) {
    EXPECT_NE(std::string(failure.what()).find("link out pe 0 moved 268435456 bytes"), std::string::npos)
        << failure.what();
  }
}

TEST(Memory, TooManyPesNameTheLimitOfMappings) {
  Size most = 0;
  std::ifstream("/proc/sys/vm/max_map_count") >> most;
  if (most < 1 || most > 100'000) GTEST_SKIP() << "the system allows " << most << " mappings";
  try {
    const sim::Memory memory(static_cast<int>(most), true, 1 << 20, 1 << 20);
    FAIL();
  } catch (const OutOfMemory& failure) {
    EXPECT_NE(std::string(failure.what()).find("vm.max_map_count"), std::string::npos) << failure.what();
  }
}

}  // namespace
}  // namespace tandem
