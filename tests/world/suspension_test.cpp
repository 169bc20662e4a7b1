// Worlds that give their memory back for a while.
#include <gmock/gmock.h>

#include <functional>
#include <thread>
#include <vector>

#include "tandem/collectives.h"
#include "tandem/error.h"
#include "tandem/worlds.h"

namespace tandem::test {
namespace {

constexpr Size kMiB = Size{1} << 20;

/// Runs `program` as two PEs, whose heap can grow.
void on_two_pes(const std::function<void(WorldProcess&)>& program) {
  const UniqueId id = UniqueId::create();
  std::vector<std::thread> threads;
  threads.reserve(2);
  for (int pe = 0; pe < 2; ++pe)
    threads.emplace_back([&, pe] {
      WorldOptions options;
      options.kind = DeviceKind::kHost;
      options.heap_bytes = 4 * kMiB;
      options.heap_limit_bytes = 64 * kMiB;
      options.control_bytes = 2 * kMiB;
      WorldProcess process(id, pe, 2, options);
      program(process);
    });
  for (std::thread& thread : threads) thread.join();
}

TEST(Suspension, KeepsAddressesAndContents) {
  on_two_pes([](WorldProcess& process) {
    World& world = process.world();
    constexpr Size kCount = 1'000'000;  // the second buffer needs a larger heap
    const Symm<int> first = world.heap().allocate<int>(kCount / 10, "first");
    const Symm<int> second = world.heap().allocate<int>(2 * kCount, "second");
    std::fill_n(first.local(), kCount / 10, 10 + world.pe());
    std::fill_n(second.local(), 2 * kCount, 20 + world.pe());
    const auto before = process.memory_use();
    EXPECT_EQ(before.kept, 2 * kMiB);
    EXPECT_GE(before.given_back, 8 * kMiB);
    for (int round = 0; round < 2; ++round) {
      process.suspend();
      EXPECT_TRUE(process.memory_use().is_suspended);
      EXPECT_EQ(process.memory_use().given_back, before.given_back);
      process.resume();
    }
    const int other = 1 - world.pe();  // whose memory is mapped again, too
    EXPECT_EQ(first.local()[77], 10 + world.pe());
    EXPECT_EQ(first.on(other)[kCount / 10 - 1], 10 + other);
    EXPECT_EQ(second.on(other)[2 * kCount - 1], 20 + other);
    const Symm<int> third = world.heap().allocate<int>(kCount, "third");  // the heap grows on
    third.local()[0] = 30;
    world.barrier();
    EXPECT_EQ(third.on(other)[0], 30);
    EXPECT_THROW(process.resume(), InvalidArgument);
    world.barrier();
  });
}

}  // namespace
}  // namespace tandem::test
