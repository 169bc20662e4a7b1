// Worlds on simulated GPUs: what happens where one PE cannot do its part.
#include <gmock/gmock.h>

#include <chrono>
#include <thread>

#include "bootstrap/processes.h"
#include "tandem/collectives.h"
#include "tandem/cuda.h"
#include "tandem/error.h"

namespace tandem::test {
namespace {

using bootstrap::testing::Ended;
using bootstrap::testing::Process;
using ::testing::HasSubstr;

class WorldOnSimulatedGpus : public ::testing::TestWithParam<const char*> {};

TEST_P(WorldOnSimulatedGpus, OfThreeProcesses) {
  const UniqueId id = UniqueId::create();
  std::vector<Process> all;
  all.reserve(3);
  for (int pe = 0; pe < 3; ++pe)
    all.emplace_back(TANDEM_CUDA_PEER, std::vector<std::string>{GetParam(), id.text(), std::to_string(pe), "3"},
                     // In a child of fork a sanitizer would report memory of the parent's threads as leaked.
                     std::vector<std::string>{"LSAN_OPTIONS=detect_leaks=0"});
  for (std::size_t pe = 0; pe < all.size(); ++pe) {
    const Ended ended = all[pe].wait();
    EXPECT_EQ(ended.code, 0) << "PE " << pe;
    EXPECT_EQ(ended.output, "") << "PE " << pe;
  }
}
INSTANTIATE_TEST_SUITE_P(Cases, WorldOnSimulatedGpus,
                         ::testing::Values("give_up", "give_up_and_leave", "come_late", "stand_still",
                                           "learn_of_the_end", "cannot_begin", "cannot_load", "register_memory", "grow",
                                           "reuse_plans", "write_at_once", "fork_within"),
                         [](const auto& one) { return std::string(one.param); });

// Address spaces of sanitizers have no room for a limit.
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
TEST(ThreadsOnSimulatedGpus, ThatCannotAllBeStarted) {
  const Ended ended = Process(TANDEM_CUDA_PEER, {"start_too_many_threads"}).wait();
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

CudaOptions options(int device = -1) {
  CudaOptions options;
  options.heap_bytes = Size{1} << 20;
  options.device = device;
  options.join_timeout_s = 600;
  return options;
}

/// A late PE clears its part behind the others' backs, unless they wait for it.
TEST(ThreadsOnSimulatedGpus, WriteToPeersAsSoonAsTheyHaveAllocated) {
  CudaThreads(4, options()).run([](World& world) {
    if (world.pe() == 1) std::this_thread::sleep_for(std::chrono::milliseconds(50));
    const Symm<int> data = world.heap().allocate<int>(4, "data");
    for (int pe = 0; pe < 4; ++pe) data.on(pe)[world.pe()] = world.pe();
    world.barrier();
    for (int from = 0; from < 4; ++from) EXPECT_EQ(data.local()[from], from) << "on PE " << world.pe();
  });
}

TEST(ThreadsOnSimulatedGpus, RefuseBuffersThatAreTooSmall) {
  const auto run = [](Size count) {
    return refusal_of([&] {
      CudaThreads(1, options()).run([&](World& world) {
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

TEST(WorldsOnSimulatedGpus, NameArgumentsOutOfRange) {
  const UniqueId id = UniqueId::create();
  EXPECT_THAT(refusal_of([&] { CudaProcess(id, -1, 2, options()); }), HasSubstr("pe: -1 given, allowed are 0 to 1"));
  EXPECT_THAT(refusal_of([&] { CudaProcess(id, 2, 2, options()); }), HasSubstr("pe: 2 given, allowed are 0 to 1"));
  EXPECT_THAT(refusal_of([&] { CudaProcess(id, 0, 0, options()); }), HasSubstr("pes: 0 given, allowed are 1 to 4096"));
  EXPECT_THAT(refusal_of([&] { CudaProcess(Placement{id, 0, 1, -1, 1}, options()); }), HasSubstr("local_pe: -1 given"));
  EXPECT_THAT(refusal_of([&] { CudaProcess(id, 0, 1, options(-2)); }),
              HasSubstr("device: -2 given, allowed are 0 to 7 (-1: by local number)"));
  EXPECT_THAT(refusal_of([&] { CudaProcess(id, 0, 1, options(8)); }), HasSubstr("device: 8 given, allowed are 0 to 7"));
  EXPECT_THAT(refusal_of([&] { CudaThreads(2, options()).record(2, true); }),
              HasSubstr("pe: 2 given, allowed are 0 to 1"));
  EXPECT_THAT(refusal_of([&] { CudaThreads(2, options()).record(-1, true); }),
              HasSubstr("pe: -1 given, allowed are 0 to 1"));
}

}  // namespace
}  // namespace tandem::test
