/// The registry, the choice of algorithms, and what plans refuse.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>
#include <tuple>
#include <utility>

#include "collectives/all_reduce/multi_ring.h"
#include "collectives/barrier/barrier.h"
#include "collectives/steps/reduce_tree_steps.h"
#include "support/collective_check.h"
#include "support/refusal.h"
#include "tandem/advanced/collective_traits.h"
#include "tandem/error.h"

namespace tandem::test {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::ThrowsMessage;

template <class E>
std::string refusal(const CollectiveCase& c) {
  try {
    check_collective(c);
  } catch (const E& error) {
    return error.what();
  }
  return "accepted";
}

std::string refusal_of_options(Collective collective, const CollectiveOptions& options) {
  return refusal_of([&](World& world) { make_collective(world, collective, options); });
}

TEST(Collectives, HaveNamesThatParse) {
  std::set<std::string> names;
  for (const Collective collective : all_collectives()) {
    EXPECT_EQ(parse_collective(name(collective)), collective);
    names.insert(name(collective));
  }
  EXPECT_EQ(names.size(), all_collectives().size());
  try {
    parse_collective("all_reduced");
    FAIL();
  } catch (const InvalidArgument& error) {
    EXPECT_THAT(error.what(), AllOf(HasSubstr("'all_reduced'"), HasSubstr("all_reduce, "), HasSubstr("exchange")));
  }
}

TEST(Collectives, HaveTheSizesOfNccl) {
  EXPECT_EQ(input_elements(Collective::kAllReduce, 5, 4, 1, 0), 5);
  EXPECT_EQ(output_elements(Collective::kAllReduce, 5, 4, 1, 0), 5);
  EXPECT_EQ(output_elements(Collective::kAllGather, 5, 4, 1, 0), 20);
  EXPECT_EQ(input_elements(Collective::kReduceScatter, 5, 4, 1, 0), 20);
  EXPECT_EQ(output_elements(Collective::kReduceScatter, 5, 4, 1, 0), 5);
  EXPECT_EQ(input_elements(Collective::kBroadcast, 5, 4, 1, 0), 0);
  EXPECT_EQ(input_elements(Collective::kBroadcast, 5, 4, 1, 1), 5);
  EXPECT_EQ(output_elements(Collective::kReduce, 5, 4, 1, 0), 0);
  EXPECT_EQ(output_elements(Collective::kReduce, 5, 4, 2, 2), 5);
  EXPECT_EQ(output_elements(Collective::kGather, 5, 4, 2, 2), 20);
  EXPECT_EQ(input_elements(Collective::kScatter, 5, 4, 2, 2), 20);
}

/// Worked out by hand for PE 1 of four, calls of five elements and root 2. A source is the first PE, the number of PEs,
/// and the element of their inputs.
TEST(Collectives, HaveTheSourcesOfTheirDefinitions) {
  const auto source = [](Collective collective, Size i, int pe = 1, int pes = 4) {
    const CollectiveSource from = traits(collective).source({5, pes, 2}, pe, i);
    return std::tuple(from.first, from.pes, from.index);
  };
  EXPECT_EQ(source(Collective::kAllReduce, 3), std::tuple(0, 4, 3));
  EXPECT_EQ(source(Collective::kReduce, 3, 2), std::tuple(0, 4, 3));
  EXPECT_EQ(source(Collective::kReduceScatter, 3), std::tuple(0, 4, 8));
  EXPECT_EQ(source(Collective::kAllGather, 13), std::tuple(2, 1, 3));
  EXPECT_EQ(source(Collective::kGather, 13, 2), std::tuple(2, 1, 3));
  EXPECT_EQ(source(Collective::kAllToAll, 13), std::tuple(2, 1, 8));
  EXPECT_EQ(source(Collective::kBroadcast, 3), std::tuple(2, 1, 3));
  EXPECT_EQ(source(Collective::kScatter, 3), std::tuple(2, 1, 8));
  EXPECT_EQ(source(Collective::kSendRecv, 3), std::tuple(0, 1, 3));
  EXPECT_EQ(source(Collective::kSendRecv, 3, 0), std::tuple(3, 1, 3));
  EXPECT_EQ(source(Collective::kExchange, 3), std::tuple(0, 1, 3));
  EXPECT_EQ(source(Collective::kExchange, 3, 2, 3), std::tuple(2, 1, 3)) << "an odd last PE copies its own";
}

TEST(Collectives, HaveThePlacesOfNccl) {
  const auto places = [](Collective collective) {
    const CollectivePlaces at = traits(collective).places(5, 1, 2);
    return std::pair(at.in, at.out);
  };
  EXPECT_EQ(places(Collective::kAllReduce), std::pair(Size{0}, Size{0}));
  EXPECT_EQ(places(Collective::kBroadcast), std::pair(Size{0}, Size{0}));
  EXPECT_EQ(places(Collective::kAllGather), std::pair(Size{5}, Size{0}));
  EXPECT_EQ(places(Collective::kReduceScatter), std::pair(Size{0}, Size{5}));
  EXPECT_EQ(places(Collective::kGather), std::pair(Size{10}, Size{0}));
  EXPECT_EQ(places(Collective::kScatter), std::pair(Size{0}, Size{10}));
  std::set<std::string> without;
  for (const Collective collective : all_collectives())
    if (!traits(collective).has_place) without.insert(name(collective));
  EXPECT_EQ(without, (std::set<std::string>{"all_to_all", "exchange", "send_recv"}));
  const std::string number = std::to_string(kCollectives);
  EXPECT_THAT(
      [] { traits(static_cast<Collective>(kCollectives)); },
      ThrowsMessage<InvalidArgument>(AllOf(HasSubstr("no number " + number), HasSubstr("there are " + number))));
}

TEST(Collectives, NameEachAlgorithmOnce) {
  std::set<std::pair<Collective, std::string>> seen;
  for (const AlgorithmInfo& info : collective_algorithms()) {
    EXPECT_TRUE(seen.emplace(info.collective, info.name).second) << info.name;
    EXPECT_FALSE(info.summary.empty()) << info.name;
  }
}

TEST(Collectives, RefuseByNameWhatATeamCannotRun) {
  for (const char* machine : {"h100x8-rail", "h200x8"})
    for (const AlgorithmInfo& info : collective_algorithms()) {
      if (!info.one_node_only) continue;
      CollectiveCase c;
      c.collective = info.collective;
      c.algorithm = info.name;
      c.machine = machine;
      c.nodes = 2;
      EXPECT_THAT(refusal<Unsupported>(c),
                  AllOf(HasSubstr("'" + info.name + "'"), HasSubstr("loads and stores"), HasSubstr("2 nodes")));
    }
}

TEST(Collectives, RefuseMulticastByNameWhereItIsNot) {
  CollectiveCase c;
  c.algorithm = "multimem";
  c.machine = "mi300x8";
  EXPECT_THAT(refusal<Unsupported>(c), AllOf(HasSubstr("'multimem'"), HasSubstr("multicast"), HasSubstr("mi300x8")));
  c.machine = "h200x8";
  c.op = ReduceOp::kProd;
  EXPECT_THAT(refusal<Unsupported>(c), AllOf(HasSubstr("'multimem'"), HasSubstr("multiply")));
  c.op = ReduceOp::kMax;
  c.type = DType::kU8;
  EXPECT_THAT(refusal<Unsupported>(c), AllOf(HasSubstr("'multimem'"), HasSubstr("u8")));
}

TEST(Collectives, RefuseBadOptions) {
  CollectiveOptions options;
  options.max_count = 10;
  options.algorithm = "rong";
  EXPECT_THAT(refusal_of_options(Collective::kAllReduce, options), AllOf(HasSubstr("'rong'"), HasSubstr("ring, ")));
  options.algorithm = "";
  options.max_count = -1;
  EXPECT_THAT(refusal_of_options(Collective::kReduce, options), AllOf(HasSubstr("max_count"), HasSubstr("-1")));
  options.max_count = 10;
  options.root = 2;
  EXPECT_THAT(refusal_of_options(Collective::kReduce, options), AllOf(HasSubstr("root: 2"), HasSubstr("0 to 1")));
  options.root = -1;
  EXPECT_THAT(refusal_of_options(Collective::kReduce, options), HasSubstr("root: -1"));
  options.root = 0;
  options.blocks = -1;
  EXPECT_THAT(refusal_of_options(Collective::kReduce, options), HasSubstr("blocks: -1"));
  options.blocks = 0;
  options.threads = 100;
  EXPECT_THAT(refusal_of_options(Collective::kReduce, options), HasSubstr("threads: 100"));
}

TEST(Collectives, RefuseNarrowBlocksByName) {
  EXPECT_THROW(Simulation(load_machine("h200x4"), 2).run([](World& world) {
    CollectiveOptions options;
    options.max_count = 10;
    options.threads = 256;
    options.algorithm = "tree";
    try {
      make_collective(world, Collective::kAllReduce, options);
    } catch (const Unsupported& error) {
      EXPECT_THAT(error.what(), AllOf(HasSubstr("'tree'"), HasSubstr("512"), HasSubstr("256")));
      throw;
    }
  }),
               Unsupported);
}

TEST(Collectives, RefuseWhenTheyAreMadeWhatTheirLaunchesWouldRefuse) {
  Machine machine = load_machine("h200x4");
  machine.gpu.max_threads_per_sm = 512;
  for (const AlgorithmInfo& info : collective_algorithms()) {
    // One warp, or blocks of its own choice.
    if ((info.by_copy_engine && !reduces(info.collective)) || info.name == "grouped") continue;
    int refused = 0;
    EXPECT_THROW(Simulation(machine, 2).run([&](World& world) {
      CollectiveOptions options;
      options.max_count = 10;
      options.algorithm = info.name;
      options.threads = 1024;
      try {
        make_collective(world, info.collective, options);
      } catch (const InvalidArgument& error) {
        EXPECT_THAT(error.what(), HasSubstr("1024 threads a block"));
        ++refused;
      }
      world.barrier();
      world.check_launch<kernels::BarrierAll>({1, 513});
    }),
                 InvalidArgument);
    EXPECT_EQ(refused, 2) << name(info.collective) << " " << info.name;
  }
}

TEST(Collectives, RefuseACountThatThePlanIsNotMadeFor) {
  const auto refused = [](Size count) {
    return refusal_of([count](World& world) {
      CollectiveOptions options;
      options.max_count = 10;
      const auto plan = make_collective(world, Collective::kAllReduce, options);
      const auto buffer = world.heap().allocate<float>(10, "buffer").as<std::byte>();
      Stream stream = world.make_stream("main");
      plan->run(stream, buffer, buffer, count);
      stream.synchronize();
    });
  };
  EXPECT_THAT(refused(-1), AllOf(HasSubstr("count: -1"), HasSubstr("0 to 10")));
  EXPECT_THAT(refused(11), AllOf(HasSubstr("count: 11"), HasSubstr("0 to 10")));
  EXPECT_EQ(refused(10), "");
}

TEST(Collectives, ChooseByDefaultWhatSuitsSizeAndTeam) {
  const auto chosen = [](Collective collective, Size count, const char* machine, int nodes, int pes = 4) {
    CollectiveCase c;
    c.pes = pes;
    c.collective = collective;
    c.count = count;
    c.calls = 1;
    c.machine = machine;
    c.nodes = nodes;
    const CollectiveResult result = check_collective(c);
    EXPECT_EQ(result.wrong, 0) << result.first_wrong;
    return result.algorithm;
  };
  const auto all_reduce = Collective::kAllReduce;
  EXPECT_EQ(chosen(all_reduce, 1000, "h200x8", 1), "one_shot_ll128");
  EXPECT_EQ(chosen(all_reduce, 100'000, "h200x8", 1), "two_shot_ll128");
  EXPECT_EQ(chosen(all_reduce, 1'200'000, "h200x8", 1), "two_shot");
  EXPECT_EQ(chosen(all_reduce, 1000, "h100x8-rail", 2), "recursive_doubling");
  EXPECT_EQ(chosen(all_reduce, 2'000'000, "h100x8-rail", 2), "two_level");
  EXPECT_EQ(chosen(all_reduce, 20'000'000, "h100x8-rail", 2), "multi_ring");
  EXPECT_EQ(chosen(Collective::kReduceScatter, 100'000, "h100x8-rail", 2), "two_level");
  EXPECT_EQ(chosen(Collective::kReduce, 1000, "h200x8", 1), "direct");
  EXPECT_EQ(chosen(Collective::kReduce, 1000, "h200x8", 2), "tree");
}

TEST(MultiRing, VisitsEveryPeOnceAndKeepsToRails) {
  for (const auto& [nodes, m] : {std::pair{1, 4}, {2, 1}, {2, 2}, {4, 8}, {2, 3}, {6, 4}}) {
    const Team team{0, 1, nodes * m, 0, m};
    std::vector<int> sends(static_cast<std::size_t>(team.size));
    for (int ring = 0; ring < m; ++ring) {
      std::set<int> seen;
      for (int position = 0; position < team.size; ++position) {
        const int pe = kernels::multi_ring_pe(team, ring, position);
        const int next = kernels::multi_ring_pe(team, ring, (position + 1) % team.size);
        seen.insert(pe);
        EXPECT_EQ(kernels::multi_ring_position(team, ring, pe), position);
        if (pe / m == next / m) continue;
        EXPECT_EQ(pe % m, next % m) << "a crossing leaves its rail";
        ++sends[static_cast<std::size_t>(pe)];
      }
      EXPECT_EQ(seen.size(), static_cast<std::size_t>(team.size));
    }
    if (nodes > 1 && m % 2 == 0) {
      for (const int count : sends) EXPECT_EQ(count, 1) << "every NIC sends for one ring";
    }
  }
}

TEST(MultiRing, FillsNicsWithItsDefaultBlocks) {
  constexpr Size bytes = Size{256} << 20;
  SimOptions options;
  options.phantom = true;
  const Machine machine = load_machine("h100x8-rail");
  Simulation simulation(machine, 2 * machine.pes_per_node, options);
  simulation.run([&](World& world) {
    const auto buffer = world.heap().allocate<std::byte>(bytes, "buffer");
    CollectiveOptions collective;
    collective.max_count = bytes / size_of(collective.type);
    collective.algorithm = "multi_ring";
    const auto plan = make_collective(world, Collective::kAllReduce, collective);
    Stream stream = world.make_stream("main");
    plan->run(stream, buffer, buffer, collective.max_count);
    stream.synchronize();
  });
  constexpr double pes = 16;
  const double nic_us = 2 * (pes - 1) / pes * static_cast<double>(bytes) / (8 * machine.nic.gbps * 1e3);
  EXPECT_LT(simulation.time_us(), 1.1 * nic_us);
}

TEST(Tree, JoinsAllPesAndCrossesEachNodeOnce) {
  for (const auto& [nodes, m] : {std::pair{1, 1}, {1, 7}, {2, 4}, {3, 3}, {5, 2}})
    for (int root = 0; root < nodes * m; ++root) {
      const Team team{0, 1, nodes * m, 0, m};
      int crossings = 0;
      for (int pe = 0; pe < team.size; ++pe) {
        const kernels::Tree tree = kernels::tree_of(team, pe, root);
        EXPECT_EQ(tree.parent < 0, pe == root);
        if (tree.parent >= 0) {
          EXPECT_EQ(kernels::tree_of(team, tree.parent, root).children[tree.slot], pe);
          crossings += tree.parent / m != pe / m;
        }
        int steps = 0;
        for (int up = pe; up != root && steps <= team.size; ++steps) up = kernels::tree_of(team, up, root).parent;
        EXPECT_LE(steps, team.size);
      }
      EXPECT_EQ(crossings, nodes - 1);
    }
}

}  // namespace
}  // namespace tandem::test
