/// A broadcast through staging: the root waits for no PE as long as its calls fit into the staging.

#include <gtest/gtest.h>

#include <atomic>
#include <thread>
#include <vector>

#include "support/host_pes.h"
#include "tandem/collectives.h"

namespace tandem {
namespace {

constexpr Size kBytes = Size{256} << 10;  // half of the staging of a block

std::byte value(int call, Size i) { return static_cast<std::byte>((i * 7 + i / 251 + call) % 253); }

Size wrong(const std::byte* data, int call) {
  Size wrong = 0;
  for (Size i = 0; i < kBytes; ++i) wrong += data[i] == value(call, i) ? 0 : 1;
  return wrong;
}

/// Sets a flag at the latest when it is destroyed, so that a root that fails leaves no PE waiting.
struct FlagAtEnd {
  std::atomic<bool>& flag;
  ~FlagAtEnd() { flag = true; }
};

TEST(HostBroadcast, ARootThatStagesIsDoneBeforeOthersBegin) {
  constexpr int kRoot = 1, kEarly = 2, kCalls = 5;
  std::atomic<bool> has_root_ended{false};
  test::HostPes(3, {.timeout_s = 10, .arrival_timeout_s = 10}).run([&](World& world) {
    const auto plan =
        make_collective(world, Collective::kBroadcast,
                        {.type = DType::kU8, .root = kRoot, .max_count = kBytes, .algorithm = "staged", .blocks = 1});
    const Symm<std::byte> data = world.heap().allocate<std::byte>(kBytes, "data");
    world.barrier();
    Stream stream = world.make_stream("main");
    std::atomic<bool> own_flag{false};
    const FlagAtEnd at_end{world.pe() == kRoot ? has_root_ended : own_flag};
    for (int call = 0; call < kCalls; ++call) {
      if (world.pe() == kRoot)
        for (Size i = 0; i < kBytes; ++i) data.local()[i] = value(call, i);
      else
        while (!has_root_ended) std::this_thread::yield();
      plan->run(stream, data, data, kBytes);
      stream.synchronize();
      EXPECT_EQ(wrong(data.local(), call), 0) << "PE " << world.pe() << " in call " << call;
      if (world.pe() == kRoot && call + 1 == kEarly) has_root_ended = true;
    }
  });
}

}  // namespace
}  // namespace tandem
