// Collectives on memory that peers do not reach: every algorithm says truly which of its buffers peers touch.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <utility>

#include "collectives/plan/collective.h"
#include "collectives/plan/staged_plan.h"
#include "support/collective_check.h"
#include "support/collective_grid.h"
#include "tandem/advanced/collective_traits.h"
#include "tandem/advanced/local_handle.h"
#include "tandem/error.h"

namespace tandem::test {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

constexpr bool kBools[] = {false, true};

std::string title(const ::testing::TestParamInfo<AlgorithmInfo>& param) {
  return std::string(name(param.param.collective)) + "_" + param.param.name;
}

class LocalBuffers : public ::testing::TestWithParam<AlgorithmInfo> {
 protected:
  CollectiveCase case_of(int pes, Size count) const {
    CollectiveCase c;
    c.collective = GetParam().collective;
    c.algorithm = GetParam().name;
    c.pes = pes;
    c.count = count;
    c.root = pes - 1;
    c.calls = 3;
    return c;
  }
};

/// A buffer that no peer accesses needs no copy: the simulated time is that of heap memory.
TEST_P(LocalBuffers, AreUsedWhereTheyLieOrCopied) {
  const AlgorithmInfo& info = GetParam();
  const auto check = [&](CollectiveCase c, double from_heap) {
    const CollectiveResult result = check_collective(c);
    EXPECT_EQ(result.wrong, 0) << c << ": " << result.first_wrong;
    if ((c.local_in && info.peers_access_input()) || (c.local_out && info.peers_access_output())) return;
    EXPECT_EQ(result.time_us, from_heap) << c;
  };
  for (const int pes : {1, 2, 5})
    for (const Size count : {1, 4099}) {
      CollectiveCase c = case_of(pes, count);
      const double from_heap = check_collective(c).time_us;
      for (const auto& [in, out] : {std::pair{true, false}, {false, true}, {true, true}}) {
        c.local_in = in;
        c.local_out = out;
        check(c, from_heap);
      }
      if (!traits(info.collective).has_place) continue;
      c = case_of(pes, count);
      c.in_place = true;
      const double in_place_from_heap = check_collective(c).time_us;
      c.local_in = c.local_out = true;
      check(c, in_place_from_heap);
    }
}

/// Its kernels, given memory that the plan would have copied; so much of it that not all of a block's goes by staging.
TEST_P(LocalBuffers, ThatPeersTouchAreFound) {
#if defined(TANDEM_SANITIZER_FIBERS)
  GTEST_SKIP() << "the sanitizer ends the program where an address is computed that lies beyond any address space";
#endif
  const AlgorithmInfo& info = GetParam();
  const auto run = [&](bool local_in, bool local_out) {
    Simulation(load_machine("h200x8"), 5).run([&](World& world) {
      CollectiveOptions options;
      options.max_count = 36'000;
      options.algorithm = info.name;
      options.blocks = 1;
      for (const kernels::Algorithm& algorithm : kernels::algorithms_of(info.collective)) {
        if (algorithm.info.name != info.name) continue;
        const auto plan = algorithm.make(world, options, world.team());
        const auto memory = [&](const char* what, bool is_local) {
          const Size bytes = world.num_pes() * options.max_count * size_of(options.type);
          return is_local ? local_handle(world, world.heap().allocate_local<std::byte>(bytes, what))
                          : world.heap().allocate<std::byte>(bytes, what);
        };
        const Symm<std::byte> in = memory("in", local_in), out = memory("out", local_out);
        Stream stream = world.make_stream("main");
        plan->run(stream, in, out, options.max_count);
        stream.synchronize();
      }
    });
  };
  const auto faults = [&](bool local_in, bool local_out) {
    try {
      run(local_in, local_out);
    } catch (const InvalidArgument&) {
      return true;
    }
    return false;
  };
  EXPECT_EQ(faults(true, false), info.peers_access_input());
  EXPECT_EQ(faults(false, true), info.peers_access_output());
}

TEST(LocalBuffersCost, IsThatOfTheMachinesProcessors) {
  const CollectiveOptions options{.max_count = Size{4} << 20, .local_in = true};
  const auto us = [&](const char* machine) {
    return kernels::copies_us({true, false}, Collective::kAllReduce, options, Team{0, 2, 1, 0, 2},
                              load_machine(machine));
  };
  EXPECT_NEAR(us("host"), 5 + 16777216 / 18.1e3, 0.1);
  EXPECT_NEAR(us("h200x8"), 1.2 + 16777216 / 2.2e6, 0.1);
}

INSTANTIATE_TEST_SUITE_P(All, LocalBuffers, ::testing::ValuesIn(collective_algorithms()), title);

/// One PE's output happens to be what all read from, as in place; the others' lie anywhere.
TEST(LocalBuffersOfPlans, WhereOutputsLieOnOnePeSaysNothingOfItsPeers) {
  for (const AlgorithmInfo& info : collective_algorithms()) {
    if (info.collective != Collective::kAllGather) continue;
    constexpr Size kCount = 1000;
    const auto value = [](int pe, Size i) { return static_cast<std::uint32_t>(1'000'000 * (pe + 1) + i); };
    Simulation(load_machine("h200x4"), 3).run([&](World& world) {
      CollectiveOptions options;
      options.type = DType::kU32;
      options.max_count = kCount;
      options.algorithm = info.name;
      options.local_out = true;
      const auto plan = make_collective(world, Collective::kAllGather, options);
      const auto in = world.heap().allocate<std::uint32_t>(3 * kCount, "in");
      const auto elsewhere = local_handle(world, world.heap().allocate_local<std::uint32_t>(3 * kCount, "elsewhere"));
      const auto out = world.pe() == 0 ? in : elsewhere;
      for (Size i = 0; i < kCount; ++i) in.local()[i] = value(world.pe(), i);
      Stream stream = world.make_stream("main");
      world.barrier();
      plan->run(stream, in.as<const std::byte>(), out.as<std::byte>(), kCount);
      stream.synchronize();
      Size wrong = 0;
      for (int pe = 0; pe < 3; ++pe)
        for (Size i = 0; i < kCount; ++i) wrong += out.local()[pe * kCount + i] != value(pe, i);
      EXPECT_EQ(wrong, 0) << info.name << " on PE " << world.pe();
      world.barrier();
    });
  }
}

TEST(LocalBuffersOfPlans, GoInPiecesWhereStagingIsSmall) {
  for (const Collective collective : all_collectives()) {
    for (const bool in_place : kBools) {
      CollectiveCase c;
      c.collective = collective;
      c.pes = 3;
      c.count = 4099;
      c.root = 1;
      c.local_in = c.local_out = true;
      c.in_place = in_place && traits(collective).has_place;
      c.staging_bytes = 8 << 10;
      for (const AlgorithmInfo& info : collective_algorithms()) {
        if (info.collective != collective) continue;
        c.algorithm = info.name;
        const CollectiveResult result = check_collective(c);
        EXPECT_EQ(result.wrong, 0) << c << ": " << result.first_wrong;
      }
    }
  }
}

/// Both buffers are copied. Copies in turn with the kernels would add their whole time.
TEST(LocalBuffersOfPlans, AreCopiedWhileOtherPiecesRun) {
  CollectiveCase c;
  c.machine = "h200x2";
  c.pes = 2;
  c.algorithm = "two_shot";
  c.blocks = 32;
  c.calls = 1;
  constexpr Size kPiece = Size{1} << 18, kPieces = 6;
  c.count = kPiece;
  const double piece = check_collective(c).time_us;
  c.local_in = c.local_out = true;
  const double copies = check_collective(c).time_us - piece;
  c.count = kPieces * kPiece;
  c.staging_bytes = 2 * kPiece * size_of(c.type);
  const double all = check_collective(c).time_us;
  EXPECT_LT(all, static_cast<double>(kPieces) * piece + 2.5 * copies);
}

TEST(LocalBuffersOfPlans, AreStreamedWhereTheyAreLarge) {
  const auto chosen = [](const char* machine, Size bytes, bool local_in, bool local_out) {
    std::string names;
    Simulation(load_machine(machine), 2).run([&](World& world) {
      if (world.pe() != 0) return;
      for (const Collective collective : {Collective::kAllReduce, Collective::kAllGather, Collective::kReduceScatter,
                                          Collective::kAllToAll, Collective::kBroadcast}) {
        CollectiveOptions options{.type = DType::kU8, .max_count = bytes, .local_in = local_in, .local_out = local_out};
        names += choose_collective(world, collective, options, world.team()).algorithm + " ";
      }
    });
    return names;
  };
  constexpr Size kMB = Size{1} << 20;
  const std::string all = "stream stream stream stream stream ";
  EXPECT_EQ(chosen("h200x2", 8 * kMB, true, true), all);
  EXPECT_EQ(chosen("h200x2", 8 * kMB, false, true), all);
  EXPECT_THAT(chosen("h200x2", 3 * kMB, true, true), Not(HasSubstr("stream")));
  EXPECT_THAT(chosen("h200x2", 64 * kMB, false, false), Not(HasSubstr("stream")));
  EXPECT_THAT(chosen("pcie-2numa", 64 * kMB, true, true), Not(HasSubstr("stream")));
}

/// Several plans stream through the same staging, by turns, while PEs begin late.
TEST(LocalBuffersOfPlans, MayBeStreamedThroughSharedStaging) {
  constexpr Size kCount = 9'001, kBytes = 32 << 10;
  constexpr int kPes = 3, kRounds = 3;
  Simulation(load_machine("h200x4"), kPes).run([&](World& world) {
    CollectiveOptions options{.type = DType::kI32, .max_count = kCount, .algorithm = "stream", .blocks = 2};
    options.local_in = options.local_out = true;
    options.staging = {world.heap().allocate<std::byte>(kBytes, "in"), world.heap().allocate<std::byte>(kBytes, "out"),
                       kBytes};
    const auto sum = make_collective(world, Collective::kAllReduce, options);
    const auto gather = make_collective(world, Collective::kAllGather, options);
    auto* const in = world.heap().allocate_local<std::int32_t>(kCount, "values");
    auto* const out = world.heap().allocate_local<std::int32_t>(kPes * kCount, "results");
    std::vector<std::int32_t> values(kCount), sums(kCount), all(kPes * kCount);
    Stream stream = world.make_stream("main");
    for (int round = 0; round < kRounds; ++round) {
      for (std::size_t i = 0; i < values.size(); ++i)
        values[i] = static_cast<std::int32_t>(i) * (world.pe() + 1) + round;
      world.copy_in(in, values.data(), kCount * 4);
      const auto from = local_handle(world, reinterpret_cast<std::byte*>(in));
      const auto to = local_handle(world, reinterpret_cast<std::byte*>(out));
      sum->run(stream, from, to, kCount);
      stream.synchronize();
      world.copy_out(sums.data(), out, kCount * 4);
      gather->run(stream, from, to, kCount);
      stream.synchronize();
      world.copy_out(all.data(), out, kPes * kCount * 4);
      for (std::size_t i = 0; i < values.size(); ++i) {
        const auto index = static_cast<std::int32_t>(i);
        ASSERT_EQ(sums[i], index * 6 + kPes * round);
        for (std::size_t pe = 0; pe < kPes; ++pe)
          ASSERT_EQ(all[pe * kCount + i], index * (static_cast<std::int32_t>(pe) + 1) + round);
      }
    }
  });
}

/// Each type, reducing algorithm and kind of factor, in one or several pieces.
TEST(FactorsOfRuns, GiveTheSumsOfTheProducts) {
  int number = 0;
  for (const AlgorithmInfo& info : collective_algorithms()) {
    if (!reduces(info.collective)) continue;
    for (const int pes : {1, 3, 4}) {
      CollectiveCase c;
      c.collective = info.collective;
      c.algorithm = info.name;
      c.pes = pes;
      c.root = pes - 1;
      c.op = ReduceOp::kPremulSum;
      c.type = kDTypes[static_cast<std::size_t>(number) % std::size(kDTypes)];
      c.scale = number % 2 == 0 ? CollectiveCase::Scale::kOfRun : CollectiveCase::Scale::kOfRunInMemory;
      c.count = number % 3 == 0 ? 37 : 4099;
      c.in_place = number % 4 < 2;
      c.local_in = c.local_out = number % 8 < 4;
      if (number++ % 5 < 3) c.staging_bytes = 16 << 10;
      const CollectiveResult result = check_collective(c);
      EXPECT_EQ(result.wrong, 0) << c << ": " << result.first_wrong;
    }
  }
}

TEST(LocalBuffersOfPlans, AreCopiedBetweenNodesWhateverTheAlgorithm) {
  CollectiveCase c;
  c.machine = "h100x8-rail";
  c.nodes = 2;
  c.algorithm = "ring_simple";
  const double from_heap = check_collective(c).time_us;
  c.local_in = c.local_out = true;
  const CollectiveResult result = check_collective(c);
  EXPECT_EQ(result.wrong, 0) << result.first_wrong;
  EXPECT_GT(result.time_us, from_heap);
}

/// The error of a world whose PEs run a call of `options_of(world)`, the output in memory of their own.
std::string error_of(const std::function<CollectiveOptions(World&)>& options_of) {
  try {
    Simulation(load_machine("h200x4"), 2).run([&](World& world) {
      const auto plan = make_collective(world, Collective::kAllReduce, options_of(world));
      const auto in = world.heap().allocate<std::byte>(4000, "in");
      const auto out = local_handle(world, world.heap().allocate_local<std::byte>(4000, "out"));
      Stream stream = world.make_stream("main");
      plan->run(stream, in, out, 1000);
      stream.synchronize();
    });
  } catch (const InvalidArgument& error) {
    return error.what();
  }
  return "";
}

TEST(LocalBuffersOfPlans, HaveToBeAnnounced) {
  EXPECT_THAT(error_of([](World&) { return CollectiveOptions{.max_count = 1000, .local_in = true}; }),
              AllOf(HasSubstr("out: memory that peers do not reach"), HasSubstr("local_out")));
}

/// One PE's input is announced as local, the others' are not.
CollectiveOptions of_two_kinds(World& world, const char* algorithm) {
  CollectiveOptions options{.max_count = 1000, .algorithm = algorithm, .local_in = world.pe() == 0, .local_out = true};
  options.staging = {world.heap().allocate<std::byte>(4096, "in"), world.heap().allocate<std::byte>(4096, "out"), 4096};
  return options;
}

TEST(LocalBuffersOfPlans, AreAlikeWherePeersTouchThem) {
  EXPECT_THAT(error_of([](World& world) { return of_two_kinds(world, "two_shot"); }),
              AllOf(HasSubstr("that copies in and out of at most 1000"), HasSubstr("that copies out of at most 1000")));
}

TEST(LocalBuffersOfPlans, MayDifferWhereNoPeerTouchesThem) {
  for (const char* const algorithm : {"one_shot_ll", "ring"})
    EXPECT_EQ(error_of([=](World& world) { return of_two_kinds(world, algorithm); }), "") << algorithm;
}

TEST(LocalBuffersOfPlans, AreKnownByTheirHandles) {
  Simulation simulation(load_machine("h200x4"), 3);
  simulation.run([](World& world) {
    auto* const own = world.heap().allocate_local<float>(4, "own");
    EXPECT_TRUE(is_local_handle(local_handle(world, own)));
    EXPECT_TRUE(is_local_handle(local_handle(world, own) + 3));
    EXPECT_FALSE(is_local_handle(local_handle<float>(world, nullptr)));
    EXPECT_FALSE(is_local_handle(world.heap().allocate<float>(4, "of all")));
    // PEs of a heap that may grow lie further apart than from the beginning of the address space.
    EXPECT_FALSE(is_local_handle(Symm<float>(own, Size{1} << 47, world.pe())));
  });
}

TEST(LocalBuffersOfPlans, MayBeOfTheHeap) {
  EXPECT_EQ(error_of([](World&) { return CollectiveOptions{.max_count = 1000, .local_in = true, .local_out = true}; }),
            "");
}

TEST(LocalBuffersOfPlans, NeedSomeStaging) {
  EXPECT_THAT(error_of([](World& world) {
                CollectiveOptions options{.max_count = 1000, .algorithm = "ring", .local_in = true, .local_out = true};
                options.staging = {world.heap().allocate<std::byte>(100, "in"),
                                   world.heap().allocate<std::byte>(100, "out"), 100};
                return options;
              }),
              HasSubstr("staging.bytes: 100 given to all_reduce of 2 PEs, allowed are at least 128"));
}

}  // namespace
}  // namespace tandem::test
