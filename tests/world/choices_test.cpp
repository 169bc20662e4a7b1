// What worlds on CPUs choose by themselves, and that their results have the same bits in every run.
#include <gmock/gmock.h>

#include <cstring>
#include <random>
#include <vector>

#include "tandem/collectives.h"
#include "tandem/worlds.h"
#include "world/cases.h"

namespace tandem::test {
namespace {

using ::testing::StartsWith;

TEST(ChoicesOnHost, CollectivesFollowTheTableOfCpus) {
  for (const int pes : {2, 3, 8})
    WorldThreads(pes, host_options()).run([](World& world) {
      for (const Collective collective : {Collective::kAllReduce, Collective::kAllGather, Collective::kReduceScatter,
                                          Collective::kBroadcast, Collective::kAllToAll})
        for (const Size count : {Size{100}, Size{1} << 18, Size{1} << 24}) {
          CollectiveOptions options;
          options.max_count = count;
          const CollectiveChoice choice = choose_collective(world, collective, options, world.team());
          EXPECT_EQ(choice.algorithm_source, OptionSource::kTable);
          EXPECT_THAT(choice.reason, StartsWith("selection table host: ")) << name(collective) << " of " << count;
        }
    });
}

TEST(ChoicesOnHost, OperatorsPlanWithFiguresOfCpus) {
  WorldThreads(2, host_options()).run([](World& world) {
    const Machine model = load_machine("host");
    EXPECT_EQ(world.machine().link.port_gbps, model.link.port_gbps);
    EXPECT_EQ(world.machine().gemm.sustained_tflops.points, model.gemm.sustained_tflops.points);
    EXPECT_EQ(world.machine().pes_per_node, 2) << "those of the world";
  });
}

/// Runs an all-reduce of the same data and returns the results of all runs.
std::vector<std::vector<float>> all_reduced(World& world, const std::string& algorithm, int runs) {
  constexpr Size kCount = 10'007;
  const auto in = world.heap().allocate<float>(kCount, "in");
  const auto out = world.heap().allocate<float>(kCount, "out");
  std::mt19937 random(static_cast<unsigned>(world.pe()) + 1);
  std::normal_distribution<float> normal;
  for (Size i = 0; i < kCount; ++i) in.local()[i] = normal(random);
  CollectiveOptions options;
  options.max_count = kCount;
  options.algorithm = algorithm;
  const auto plan = make_collective(world, Collective::kAllReduce, options);
  Stream stream = world.make_stream("main");
  std::vector<std::vector<float>> results;
  for (int run = 0; run < runs; ++run) {
    plan->run(stream, in.as<const std::byte>(), out.as<std::byte>(), kCount);
    stream.synchronize();
    results.emplace_back(out.local(), out.local() + kCount);
    world.barrier();
  }
  return results;
}

TEST(BitsOnHost, OfAllReducesAreTheSameInEveryRunAndOnEveryPe) {
  constexpr int kPes = 3, kRuns = 4;
  for (const AlgorithmInfo& info : collective_algorithms()) {
    if (info.collective != Collective::kAllReduce || info.name == "multimem") continue;
    std::vector<std::vector<float>> results(kPes);
    WorldThreads(kPes, host_options()).run([&](World& world) {
      const auto runs = all_reduced(world, info.name, kRuns);
      for (const auto& run : runs)
        EXPECT_EQ(std::memcmp(run.data(), runs[0].data(), run.size() * sizeof(float)), 0) << info.name;
      results[static_cast<std::size_t>(world.pe())] = runs[0];
    });
    for (const auto& result : results)
      EXPECT_EQ(std::memcmp(result.data(), results[0].data(), result.size() * sizeof(float)), 0) << info.name;
  }
}

}  // namespace
}  // namespace tandem::test
