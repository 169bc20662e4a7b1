// Some nodes that stand for all of them.

#include "sim/run/folding.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "tandem/collectives.h"
#include "tandem/error.h"
#include "tandem/simulation.h"

namespace tandem {
namespace {

struct Times {
  double us = 0;
  std::uint64_t events = 0;
};

/// Two calls without data on nodes of 8 PEs, of which `folded` run; 0: all.
Times times_of(Collective collective, const char* algorithm, int pes, Size bytes, int folded) {
  const sim::Folding folding{folded};
  SimOptions options;
  options.phantom = true;
  if (folded > 0) options.seams.folding = &folding;
  Simulation simulation(load_machine("h100x8-rail"), pes, options);
  simulation.run([&](World& world) {
    CollectiveOptions call;
    call.algorithm = algorithm;
    call.blocks = 2;
    call.type = DType::kF32;
    call.max_count = bytes / size_of(call.type) / (collective == Collective::kAllReduce ? 1 : pes);
    const auto in = world.heap().allocate<std::byte>(bytes, "in");
    const auto out = world.heap().allocate<std::byte>(bytes, "out");
    const auto plan = make_collective(world, collective, call);
    Stream stream = world.make_stream("main");
    for (int i = 0; i < 2; ++i) plan->run(stream, in, out, call.max_count);
    stream.synchronize();
  });
  return {simulation.time_us(), simulation.events()};
}

struct Folded {
  Collective collective;
  const char* algorithm;
  Size bytes;
  int nodes = 1;
};

TEST(Folding, TakesTheTimeOfAllNodesWithFewerEvents) {
  using enum Collective;
  constexpr Size kib = 1024, mib = Size{1} << 20;
  constexpr int pes = 48;
  for (const Folded& one : {Folded{kAllGather, "two_level", 6 * mib}, Folded{kAllGather, "two_level_ll", 96 * kib},
                            Folded{kAllGather, "push", 6 * mib}, Folded{kAllGather, "ring", 6 * mib},
                            Folded{kReduceScatter, "two_level", 6 * mib}, Folded{kReduceScatter, "push", 6 * mib},
                            Folded{kReduceScatter, "ring", 6 * mib}, Folded{kAllToAll, "two_level", 6 * mib},
                            Folded{kAllToAll, "push", 6 * mib}, Folded{kAllReduce, "two_level", 6 * mib},
                            Folded{kAllReduce, "ring", 6 * mib}, Folded{kAllReduce, "ring_simple", 96 * kib},
                            Folded{kAllReduce, "multi_ring", 6 * mib, 2}}) {
    const Times all = times_of(one.collective, one.algorithm, pes, one.bytes, 0);
    const Times folded = times_of(one.collective, one.algorithm, pes, one.bytes, one.nodes);
    EXPECT_NEAR(folded.us / all.us, 1, 0.01) << name(one.collective) << " " << one.algorithm;
    EXPECT_LT(folded.events, all.events / 2) << name(one.collective) << " " << one.algorithm;
  }
}

TEST(Folding, RefusesWhatItCannotStandFor) {
  EXPECT_THROW(times_of(Collective::kAllGather, "push", 48, 4096, 4), InvalidArgument) << "4 of 6 nodes";
  const sim::Folding folding{1};
  SimOptions options;
  options.seams.folding = &folding;
  EXPECT_THROW(Simulation(load_machine("h100x8-rail"), 16, options), InvalidArgument) << "a run with data";
  options.phantom = true;
  Machine machine = load_machine("h100x8-rail");
  machine.nic.cross_rail_share = 0.5;
  EXPECT_THROW(Simulation(machine, 16, options), InvalidArgument) << "nodes that share a spine";
  options.pes_per_node = 4;
  EXPECT_THROW(Simulation(load_machine("h200x8"), 8, options), InvalidArgument) << "nodes of one host";
}

}  // namespace
}  // namespace tandem
