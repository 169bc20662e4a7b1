// Streams on CPUs, and what becomes of their errors.
#include <gmock/gmock.h>

#include <atomic>
#include <cstring>
#include <stdexcept>

#include "tandem/error.h"
#include "tandem/worlds.h"
#include "world/cases.h"

namespace tandem::test {
namespace {

using ::testing::HasSubstr;

/// Throws on PE 1.
struct Fails {
  struct Args {
    int pe;
  };
  template <class Block>
  static void run(Block& block, const Args& a) {
    if (block.pe() == a.pe) throw std::runtime_error("on purpose");
  }
};

template <class Program>
std::string error_of(int pes, const Program& program) {
  try {
    WorldThreads(pes, host_options()).run(program);
  } catch (const std::exception& error) {
    return error.what();
  }
  return "no error";
}

/// The host goes on while a stream waits for a signal that comes from behind.
TEST(HostStreams, AreAsynchronous) {
  EXPECT_EQ(error_of(1,
                     [](World& world) {
                       const Signals words = world.heap().signals(2, "words");
                       Stream waits = world.make_stream("waits");
                       Stream writes = world.make_stream("writes");
                       waits.wait_signal(words.local(), 1);
                       waits.write_signal(words.local() + 1, 5);
                       writes.write_signal(words.local(), 1);
                       waits.synchronize();
                       Epoch found = 0;
                       world.copy_out(&found, words.local() + 1, sizeof found);
                       EXPECT_EQ(found, 5U);
                     }),
            "no error");
}

TEST(HostStreams, TakeWorkInTheOrderThatEventsGive) {
  EXPECT_EQ(error_of(1,
                     [](World& world) {
                       const auto data = world.heap().allocate<int>(3, "data");
                       const Signals go = world.heap().signals(1, "go");
                       const int values[] = {1, 2, 3};
                       world.copy_in(data.local(), values, sizeof values);
                       Stream first = world.make_stream("first");
                       Stream second = world.make_stream("second");
                       first.wait_signal(go.local(), 1);
                       first.copy_async(data.local() + 1, data.local(), 4);
                       second.wait_for(first);
                       second.copy_async(data.local() + 2, data.local() + 1, 4);
                       Stream third = world.make_stream("third");
                       third.write_signal(go.local(), 1);
                       second.synchronize();
                       int found[3];
                       world.copy_out(found, data.local(), sizeof found);
                       EXPECT_EQ(found[2], 1);
                     }),
            "no error");
}

/// Long copies are shared by threads.
TEST(HostStreams, CopyEveryByte) {
  EXPECT_EQ(error_of(1,
                     [](World& world) {
                       constexpr Size kBytes = (Size{3} << 20) + 77;
                       const auto from = world.heap().allocate<std::uint8_t>(kBytes, "from");
                       const auto to = world.heap().allocate<std::uint8_t>(kBytes + 1, "to");
                       for (Size i = 0; i < kBytes; ++i) from.local()[i] = static_cast<std::uint8_t>(i % 251 + 1);
                       Stream stream = world.make_stream("main");
                       for (const Size bytes : {Size{1}, kBytes / 2, kBytes}) {
                         std::memset(to.local(), 0, kBytes + 1);
                         stream.copy_async(to.local(), from.local(), bytes);
                         stream.synchronize();
                         EXPECT_EQ(std::memcmp(to.local(), from.local(), static_cast<std::size_t>(bytes)), 0);
                         EXPECT_EQ(to.local()[bytes], 0);
                       }
                     }),
            "no error");
}

/// Both PEs are told, the one that waits for the failed one's signal too.
TEST(HostStreams, EndTheWorldWhereAKernelFails) {
  std::atomic<int> told{0};
  const std::string text = error_of(2, [&](World& world) {
    const Signals words = world.heap().signals(1, "words");
    Stream stream = world.make_stream("main");
    stream.launch<Fails>({2, 64}, {1});
    stream.wait_signal(words.local(), 1);
    try {
      stream.synchronize();
    } catch (const std::exception& error) {
      EXPECT_THAT(error.what(), HasSubstr("on purpose"));
      ++told;
      throw;
    }
  });
  EXPECT_EQ(told, 2);
  EXPECT_THAT(text, HasSubstr("on purpose"));
}

TEST(HostStreams, RefuseGridsThatNoBlockContractHas) {
  const auto launch = [](Grid grid) {
    return error_of(1, [&](World& world) { world.make_stream("main").launch<Fails>(grid, {1}); });
  };
  EXPECT_THAT(launch({0, 64}), HasSubstr("0 blocks given, at least 1 is needed"));
  EXPECT_THAT(launch({1, 48}), HasSubstr("48 threads a block given, allowed are multiples of 32 up to 1024"));
  EXPECT_THAT(launch({1, 2048}), HasSubstr("2048 threads a block given"));
  EXPECT_THAT(launch({100'000, 32}), HasSubstr("100000 blocks given, the host holds 512"));
}

/// A world that ends waits for its own work only: the other world's work waits for what the host does afterwards.
TEST(HostStreams, OfOneWorldDoNotDelayTheEndOfAnother) {
  WorldOptions options = host_options();
  options.timeout_s = 5;
  WorldThreads(1, options).run([](World& world) {
    const Signals go = world.heap().signals(1, "go");
    Stream waits = world.make_stream("waits");
    waits.wait_signal(go.local(), 1);
    WorldThreads(1, host_options()).run([](World& other) { other.make_stream("main").synchronize(); });
    world.make_stream("writes").write_signal(go.local(), 1);
    EXPECT_NO_THROW(waits.synchronize());
  });
}

TEST(HostStreams, OfAThreadThatThrowsAreLeftToFinish) {
  const std::string text = error_of(2, [](World& world) {
    const Signals words = world.heap().signals(1, "words");
    Stream stream = world.make_stream("main");
    stream.wait_signal(words.local(), 1);  // ends with the world
    if (world.pe() == 0) throw std::runtime_error("the host program ends");
    stream.synchronize();
  });
  EXPECT_THAT(text, HasSubstr("the host program ends"));
}

TEST(Worlds, SayOnWhichDevicesTheyRun) {
  WorldThreads threads(1, host_options());
  EXPECT_EQ(threads.kind(), DeviceKind::kHost);
  threads.run([](World& world) { EXPECT_EQ(world.device(), DeviceKind::kHost); });
  WorldOptions simulated;
  simulated.kind = DeviceKind::kSimulated;
  EXPECT_THROW(WorldThreads(1, simulated), InvalidArgument);
  WorldOptions gpu;
  gpu.kind = DeviceKind::kGpu;
  EXPECT_THROW(WorldThreads(1, gpu), Unsupported) << "this program has no CUDA backend";
}

TEST(Worlds, TakeTheDevicesThatTheEnvironmentNames) {
  WorldOptions any;
  any.heap_bytes = Size{1} << 20;
  EXPECT_EQ(WorldThreads(1, any).kind(), DeviceKind::kHost) << "there are no GPUs here";
  ::setenv("TANDEM_DEVICE", "gpu", 1);
  EXPECT_THROW(WorldThreads(1, any), Unsupported);
  ::setenv("TANDEM_DEVICE", "cpu", 1);
  EXPECT_THROW(WorldThreads(1, any), InvalidArgument);
  ::setenv("TANDEM_DEVICE", "host", 1);
  EXPECT_EQ(WorldThreads(1, any).kind(), DeviceKind::kHost);
  ::unsetenv("TANDEM_DEVICE");
}

}  // namespace
}  // namespace tandem::test
