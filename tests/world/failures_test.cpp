// Worlds on CPUs where one PE cannot do its part.
#include <gmock/gmock.h>

#include <chrono>
#include <thread>

#include "bootstrap/processes.h"
#include "support/error_of.h"
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
                                           "miss_a_call", "differ", "differ_on_devices", "exhaust_the_heap",
                                           "exhaust_addresses"),
                         [](const auto& one) { return std::string(one.param); });

TEST(ThreadsOnHost, HaveALimitOfAddresses) {
  WorldOptions large;
  large.kind = DeviceKind::kHost;
  large.heap_limit_bytes = Size{40} << 40;
  EXPECT_THAT(error_of<InvalidArgument>([&] { WorldThreads(2, large); }),
              HasSubstr("2 PEs x 40960.25 GiB of addresses = 81920.50 GiB given, allowed are 65536 GiB"));
}

// Address spaces of sanitizers have no room for a limit.
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
TEST(ThreadsOnHost, ThatCannotAllBeStarted) {
  const Ended ended = Process(TANDEM_WORLD_PEER, {"start_too_many_threads"}).wait();
  EXPECT_EQ(ended.code, 0);
  EXPECT_THAT(ended.output, HasSubstr("tandem warning the world is over: the thread of PE 1 could not be started"));
}
#endif

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

/// Whatever differs is named before memory is allocated, whose sizes may differ with it.
TEST(ThreadsOnHost, NameOperatorsThatDiffer) {
  using Change = void (*)(OperatorOptions&);
  const std::pair<Change, const char*> cases[] = {
      {[](OperatorOptions& o) { o.m = 64; }, "fp8_e4m3 of at most 64 x 32 x 32"},
      {[](OperatorOptions& o) { o.fast_accumulation = true; }, "of at most 32 x 32 x 32, fast accumulation"},
      {[](OperatorOptions& o) { o.a_scale_per_row = true; }, ", scales of rows"},
      {[](OperatorOptions& o) { o.b_scale_per_column = true; }, ", scales of columns"},
      {[](OperatorOptions& o) { o.block_scales = true; }, ", scales of blocks"},
      {[](OperatorOptions& o) { o.b_layout = BLayout::kKxN; }, ", B k x n"},
      {[](OperatorOptions& o) { o.out_type = DType::kF16; }, ", C f16"},
      {[](OperatorOptions& o) { o.activation = Activation::kGelu; }, ", gelu"},
      {[](OperatorOptions& o) { o.norm.norm = Norm::kRms; }, ", norm rms epsilon 1e-06"},
      {[](OperatorOptions& o) { o.norm = {.norm = Norm::kRms, .epsilon = 1}; }, ", norm rms epsilon 1 "},
      {[](OperatorOptions& o) { o.norm.residual = true; },
       ", norm none epsilon 1e-06 quantisation none scale 1 residual"},
      {[](OperatorOptions& o) { o.form = Form::kSequential; }, ", sequential"},
      {[](OperatorOptions& o) { o.splits = 2; }, ", splits 2"},
      {[](OperatorOptions& o) { o.copy_by = CopyBy::kSm; }, ", sm"}};
  for (const auto& [change, text] : cases) {
    const std::string problem = error_of<InvalidArgument>([change = change] {
      WorldThreads(2, options()).run([&](World& world) {
        OperatorOptions o{.m = 32, .n = 32, .k = 32, .type = DType::kE4M3};
        if (world.pe() == 1) change(o);
        make_operator(world, Operator::kGemmAllReduce, o);
      });
    });
    EXPECT_THAT(problem, HasSubstr("all PEs must make the same plans in the same order")) << text;
    EXPECT_THAT(problem, HasSubstr(text));
  }
}

TEST(ThreadsOnHost, NameCollectivesThatDiffer) {
  const std::string problem = error_of<InvalidArgument>([] {
    WorldThreads(2, options()).run([](World& world) {
      make_collective(world, Collective::kAllReduce, {.max_count = world.pe() == 0 ? 100 : 3000});
    });
  });
  EXPECT_THAT(problem, HasSubstr("all PEs must make the same plans in the same order"));
  EXPECT_THAT(problem, HasSubstr("of at most 3000"));
}

TEST(ThreadsOnHost, RefuseBuffersThatAreTooSmall) {
  const auto run = [](Size count) {
    return error_of<InvalidArgument>([&] {
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
  EXPECT_EQ(run(10), "no error");
  EXPECT_THAT(run(100), HasSubstr("in: a buffer that has 40 bytes from "));
}

TEST(ThreadsOnHost, NameTheMostPes) {
  EXPECT_THAT(error_of<InvalidArgument>([] { WorldThreads(257, options()); }),
              HasSubstr("pes: 257 given, allowed are 1 to 256 PEs of one process"));
  EXPECT_THAT(error_of<InvalidArgument>([] { WorldThreads(0, options()); }),
              HasSubstr("pes: 0 given, at least 1 is needed"));
}

TEST(WorldsOnHost, NameArgumentsOutOfRange) {
  const UniqueId id = UniqueId::create();
  EXPECT_THAT(error_of<InvalidArgument>([&] { WorldProcess(id, -1, 2, options()); }),
              HasSubstr("pe: -1 given, allowed are 0 to 1"));
  EXPECT_THAT(error_of<InvalidArgument>([&] { WorldProcess(id, 2, 2, options()); }),
              HasSubstr("pe: 2 given, allowed are 0 to 1"));
  EXPECT_THAT(error_of<InvalidArgument>([&] { WorldProcess(id, 0, 0, options()); }),
              HasSubstr("pes: 0 given, allowed are 1 to 4096"));
  EXPECT_THAT(error_of<InvalidArgument>([&] {
                WorldProcess(Placement{id, 0, 1, -1, 1}, options());
              }),
              HasSubstr("local_pe: -1 given"));
  EXPECT_THAT(error_of<InvalidArgument>([&] { WorldProcess(id, 0, 1, options(-2)); }),
              HasSubstr("device: -2 given, allowed are 0 to 255 (-1: by local number)"));
  EXPECT_THAT(error_of<InvalidArgument>([&] { WorldProcess(id, 0, 1, options(256)); }),
              HasSubstr("device: 256 given, allowed are 0 to 255"));
  EXPECT_THAT(error_of<InvalidArgument>([&] { WorldThreads(2, options()).record(2, true); }),
              HasSubstr("pe: 2 given, allowed are 0 to 1"));
  EXPECT_THAT(error_of<InvalidArgument>([&] { WorldThreads(2, options()).record(-1, true); }),
              HasSubstr("pe: -1 given, allowed are 0 to 1"));
}

}  // namespace
}  // namespace tandem::test
