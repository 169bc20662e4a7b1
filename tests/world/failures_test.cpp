// Worlds on CPUs where one PE cannot do its part.
#include <gmock/gmock.h>

#include <chrono>
#include <thread>

#include "bootstrap/processes.h"
#include "tandem/collectives.h"
#include "tandem/error.h"
#include "tandem/operators.h"
#include "tandem/worlds.h"

namespace tandem::test {
namespace {

using bootstrap::testing::Ended;
using bootstrap::testing::Process;
using ::testing::HasSubstr;

class WorldOnHost : public ::testing::TestWithParam<const char*> {};

TEST_P(WorldOnHost, OfThreeProcesses) {
  const UniqueId id = UniqueId::create(), second = UniqueId::create();
  const bool is_killed = GetParam() == std::string("survive_a_kill");
  std::vector<Process> all;
  all.reserve(3);
  for (int pe = 0; pe < 3; ++pe)
    all.emplace_back(TANDEM_WORLD_PEER, std::vector<std::string>{GetParam(), id.text(), std::to_string(pe), "3"},
                     // In a child of fork a sanitizer would report memory of the parent's threads as leaked.
                     std::vector<std::string>{"LSAN_OPTIONS=detect_leaks=0", "TANDEM_TEST_SECOND_ID=" + second.text()});
  for (std::size_t pe = 0; pe < all.size(); ++pe) {
    const Ended ended = all[pe].wait();
    EXPECT_EQ(ended.code, is_killed && pe == 1 ? -SIGKILL : 0) << "PE " << pe;
    EXPECT_EQ(ended.output, "") << "PE " << pe;
  }
}
INSTANTIATE_TEST_SUITE_P(Cases, WorldOnHost,
                         ::testing::Values("abort_waits", "give_up_and_leave", "come_late", "stand_still",
                                           "learn_of_the_end", "cannot_begin", "cannot_load", "register_memory", "grow",
                                           "reuse_plans", "write_at_once", "fork_within", "survive_a_kill",
                                           "miss_a_call", "differ", "differ_on_devices", "exhaust_the_heap"),
                         [](const auto& one) { return std::string(one.param); });

// Address spaces of sanitizers have no room for a limit.
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
TEST(ThreadsOnHost, ThatCannotAllBeStarted) {
  const Ended ended = Process(TANDEM_WORLD_PEER, {"start_too_many_threads"}).wait();
  EXPECT_EQ(ended.code, 0);
  EXPECT_THAT(ended.output, HasSubstr("tandem warning the world is over: the thread of PE 1 could not be started"));
}
#endif

template <class Work>
std::string refusal_of(Work work) {
  try {
    work();
  } catch (const InvalidArgument& error) {
    return error.what();
  } catch (const std::exception& error) {
    return std::string("another error: ") + error.what();
  }
  return "not refused";
}

WorldOptions options(int device = -1) {
  WorldOptions options;
  options.kind = DeviceKind::kHost;
  options.heap_bytes = Size{1} << 20;
  options.device = device;
  options.join_timeout_s = 600;
  return options;
}

/// A late PE clears its part behind the others' backs, unless they wait for it.
TEST(ThreadsOnHost, WriteToPeersAsSoonAsTheyHaveAllocated) {
  WorldThreads(4, options()).run([](World& world) {
    if (world.pe() == 1) std::this_thread::sleep_for(std::chrono::milliseconds(50));
    const Symm<int> data = world.heap().allocate<int>(4, "data");
    for (int pe = 0; pe < 4; ++pe) data.on(pe)[world.pe()] = world.pe();
    world.barrier();
    for (int from = 0; from < 4; ++from) EXPECT_EQ(data.local()[from], from) << "on PE " << world.pe();
  });
}

TEST(ThreadsOnHost, NamePlansWhoseAccumulationDiffers) {
  const std::string problem = refusal_of([] {
    WorldThreads(2, options()).run([&](World& world) {
      const auto data = world.heap().allocate_local<std::byte>(3 * 4096, "a, b and c");
      Stream stream = world.make_stream("main");
      const auto plan =
          make_operator(world, Operator::kGemmAllReduce,
                        {.m = 32, .n = 32, .k = 32, .type = DType::kE4M3, .fast_accumulation = world.pe() == 1});
      plan->run(stream, data, data + 4096, data + 8192);
      stream.synchronize();
    });
  });
  EXPECT_THAT(problem, HasSubstr("gemm_all_reduce fp8_e4m3 of at most 32 x 32 x 32, fast accumulation"));
}

TEST(ThreadsOnHost, RefuseBuffersThatAreTooSmall) {
  const auto run = [](Size count) {
    return refusal_of([&] {
      WorldThreads(1, options()).run([&](World& world) {
        const auto data = world.heap().allocate<float>(10, "data").as<std::byte>();
        world.heap().allocate<float>(1000, "the neighbour");
        Stream stream = world.make_stream("main");
        make_collective(world, Collective::kAllReduce, {.max_count = 100, .algorithm = "two_shot"})
            ->run(stream, data, data, count);
        stream.synchronize();
      });
    });
  };
  EXPECT_EQ(run(10), "not refused");
  EXPECT_THAT(run(100), HasSubstr("in: a buffer that has 40 bytes from "));
}

TEST(ThreadsOnHost, NameTheMostPes) {
  EXPECT_THAT(refusal_of([] { WorldThreads(257, options()); }),
              HasSubstr("pes: 257 given, allowed are 1 to 256 PEs of one process"));
  EXPECT_THAT(refusal_of([] { WorldThreads(0, options()); }), HasSubstr("pes: 0 given, at least 1 is needed"));
}

TEST(WorldsOnHost, NameArgumentsOutOfRange) {
  const UniqueId id = UniqueId::create();
  EXPECT_THAT(refusal_of([&] { WorldProcess(id, -1, 2, options()); }), HasSubstr("pe: -1 given, allowed are 0 to 1"));
  EXPECT_THAT(refusal_of([&] { WorldProcess(id, 2, 2, options()); }), HasSubstr("pe: 2 given, allowed are 0 to 1"));
  EXPECT_THAT(refusal_of([&] { WorldProcess(id, 0, 0, options()); }), HasSubstr("pes: 0 given, allowed are 1 to 4096"));
  EXPECT_THAT(refusal_of([&] {
                WorldProcess(Placement{id, 0, 1, -1, 1}, options());
              }),
              HasSubstr("local_pe: -1 given"));
  EXPECT_THAT(refusal_of([&] { WorldProcess(id, 0, 1, options(-2)); }),
              HasSubstr("device: -2 given, allowed are 0 to 255 (-1: by local number)"));
  EXPECT_THAT(refusal_of([&] { WorldProcess(id, 0, 1, options(256)); }),
              HasSubstr("device: 256 given, allowed are 0 to 255"));
  EXPECT_THAT(refusal_of([&] { WorldThreads(2, options()).record(2, true); }),
              HasSubstr("pe: 2 given, allowed are 0 to 1"));
  EXPECT_THAT(refusal_of([&] { WorldThreads(2, options()).record(-1, true); }),
              HasSubstr("pe: -1 given, allowed are 0 to 1"));
}

}  // namespace
}  // namespace tandem::test
