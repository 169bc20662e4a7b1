// Buffers that are freed, and heaps that grow.
#include <gtest/gtest.h>

#include <utility>

#include "base/mapping_pool.h"
#include "tandem/collectives.h"
#include "tandem/error.h"
#include "tandem/machine.h"
#include "tandem/simulation.h"

namespace tandem {
namespace {

constexpr Size kMiB = Size{1} << 20;

void run(Size heap, Size limit, const std::function<void(World&)>& program, std::uint64_t seed = 1) {
  SimOptions options;
  options.heap_bytes = heap;
  options.heap_limit_bytes = limit;
  options.seed = seed;
  Simulation(load_machine("h200x4"), 4, options).run(program);
}

/// The control part of 16 PEs is twice that of 8: packets of many PEs lie there.
TEST(Heap, ControlPartOfPhantomRunsGrowsWithThePes) {
  const auto makes = [](int pes, bool phantom) {
    SimOptions options;
    options.phantom = phantom;
    try {
      Simulation(load_machine("h200x8"), pes, options).run([](World& world) {
        const auto index = world.heap().allocate<Index>(300 * kMiB / Size{sizeof(Index)}, "index");
        EXPECT_EQ(index.local()[300 * kMiB / Size{sizeof(Index)} - 1], Index{});
      });
    } catch (const OutOfMemory& error) {
      EXPECT_NE(std::string(error.what()).find("of 268435456 bytes of control memory left"), std::string::npos);
      return false;
    }
    return true;
  };
  EXPECT_TRUE(makes(16, true));
  EXPECT_FALSE(makes(8, true));
  EXPECT_FALSE(makes(16, false));
}

TEST(Heap, BuffersThatAreFreedMakeRoom) {
  run(kMiB, 0, [](World& world) {
    for (int i = 0; i < 10; ++i) {
      const auto data = world.heap().allocate<float>(200'000, "data");
      const auto signals = world.heap().signals(1000, "signals");
      float* const own = world.heap().allocate_local<float>(50'000, "own");
      EXPECT_EQ(signals.local()[999].value, 0);
      signals.local()[999].value = 7;
      world.heap().free(data);
      world.heap().free(signals);
      world.heap().free_local(own);
    }
    EXPECT_THROW(world.heap().free_local(&world), InvalidArgument);
  });
}

TEST(Heap, IsNotFreedBeforeAllPesHaveCome) {
  int here = 0;
  run(kMiB, 0, [&](World& world) {
    const auto data = world.heap().allocate<float>(1000, "data");
    ++here;
    world.heap().free(data);
    EXPECT_EQ(here, 4);
  });
}

TEST(Heap, AnAllocationReturnsWhenAllPesHaveCome) {
  int here = 0;
  run(kMiB, 0, [&](World& world) {
    ++here;
    world.heap().allocate<float>(1000, "data");
    EXPECT_EQ(here, 4);
  });
}

TEST(Heap, APeThatDoesNotAllocateIsNamedByThoseThatDo) {
  try {
    run(kMiB, 0, [](World& world) {
      if (world.pe() != 2) world.heap().allocate<float>(1000, "data");
    });
    FAIL() << "not refused";
  } catch (const Deadlock& error) {
    EXPECT_NE(std::string(error.what()).find("PE 3 host program waits in the allocation of 'data': 3 of 4 are here"),
              std::string::npos)
        << error.what();
  }
}

TEST(Heap, PesThatFreeOtherBuffersAreRefused) {
  EXPECT_THROW(run(kMiB, 0,
                   [](World& world) {
                     const auto a = world.heap().allocate<float>(1000, "a");
                     const auto b = world.heap().allocate<float>(1000, "b");
                     world.heap().free(world.pe() == 3 ? b : a);
                   }),
               InvalidArgument);
}

TEST(Heap, GrowsUpToItsLimitAndItsGrowthServesCollectives) {
  std::pair<Size, Size> offsets[2];
  for (const std::uint64_t seed : {1, 2})
    run(
        2 * kMiB, 32 * kMiB,
        [&](World& world) {
          const auto small = world.heap().allocate<float>(400'000, "small");
          if (world.pe() == 1) world.heap().allocate_local<float>(100'000, "own");
          constexpr Size count = 1'000'000;
          const auto in = world.heap().allocate<float>(count, "in");
          const auto out = world.heap().allocate<float>(count, "out");
          for (Size i = 0; i < count; i += 1000) in.local()[i] = static_cast<float>(world.pe() + 1);
          const auto plan =
              make_collective(world, Collective::kAllReduce, {.max_count = count, .algorithm = "two_shot"});
          Stream stream = world.make_stream("main");
          plan->run(stream, in.as<const std::byte>(), out.as<std::byte>(), count);
          stream.synchronize();
          for (Size i = 0; i < count; i += 1000) ASSERT_EQ(out.local()[i], 10);
          EXPECT_THROW(world.heap().allocate<float>(10'000'000, "too large"), OutOfMemory);
          world.heap().free(in);
          EXPECT_EQ(world.heap().allocate<float>(count, "again").local(), in.local());
          if (world.pe() == 0) offsets[seed - 1] = {in.on(0) - small.on(0), out.on(0) - small.on(0)};
        },
        seed);
  EXPECT_EQ(offsets[0], offsets[1]) << "other schedules, the same heap";
}

TEST(Heap, ThatMayGrowIsNotPassedOnToTheNextSimulation) {
  const MappingPool pool;
  run(2 * kMiB, 32 * kMiB, [](World&) {});
  run(32 * kMiB, 0, [](World& world) {
    const auto data = world.heap().allocate<float>(4'000'000, "data");
    data.local()[3'999'999] = 1;
  });
}

}  // namespace
}  // namespace tandem
