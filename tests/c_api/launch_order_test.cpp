// Calls of several worlds on one GPU: each fits beside those that it does not wait for.
#include "order/launch_order.h"

#include <gmock/gmock.h>

#include <memory>
#include <vector>

#include "c_api/stream_calls.h"
#include "tandem/error.h"

namespace tandem::c {
namespace {

using Calls = test::FakeStreamCalls;
using Numbers = test::Numbers;

using ::testing::ElementsAre;
using ::testing::IsEmpty;
/// Worlds on a GPU of 132 SMs, each with a stream of its number, from 1.
struct Worlds {
  explicit Worlds(std::size_t count) : streams(count) {
    for (std::size_t i = 0; i < count; ++i) {
      streams[i].number = i + 1;
      orders.push_back(std::make_unique<LastCall>(calls, launches, 132, false));
    }
  }
  /// Returns the streams for whose work a call of these blocks waits.
  Numbers call(std::size_t world, int blocks) {
    test::FakeStream& stream = streams[world - 1];
    StreamOrder& order = *orders[world - 1];
    stream.waited_for.clear();
    order.then(&stream, [&](bool) { order.reserve(&stream, blocks); });
    return stream.waited_for;
  }

  Calls calls;
  LaunchOrder launches;
  std::vector<test::FakeStream> streams;
  std::vector<std::unique_ptr<LastCall>> orders;
};

TEST(LaunchOrder, LetsCallsRunSideBySideThatFit) {
  Worlds worlds(4);
  for (int round = 0; round < 3; ++round)
    for (std::size_t world = 1; world <= 4; ++world) EXPECT_THAT(worlds.call(world, 32), IsEmpty());
}

TEST(LaunchOrder, LetsACallWaitForTheLeastRecentOnes) {
  Worlds worlds(6);
  for (const std::size_t world : {2, 1, 3, 4}) EXPECT_THAT(worlds.call(world, 32), IsEmpty());
  EXPECT_THAT(worlds.call(5, 32), ElementsAre(2));
  EXPECT_THAT(worlds.call(6, 132), ElementsAre(2, 1, 3, 4, 5));  // 4 SMs of the first one's are still its own
  EXPECT_THAT(worlds.call(1, 8), ElementsAre(6));
}

TEST(LaunchOrder, LetsAllWaitThatTakeOverACallsRoom) {
  Worlds worlds(4);
  EXPECT_THAT(worlds.call(1, 128), IsEmpty());
  EXPECT_THAT(worlds.call(2, 32), ElementsAre(1));
  EXPECT_THAT(worlds.call(3, 64), ElementsAre(1));  // the first call may still run and hold all its SMs
  EXPECT_THAT(worlds.call(4, 4), ElementsAre(1));
  EXPECT_THAT(worlds.call(1, 40), ElementsAre(2));  // 32 SMs are left to it
}

TEST(LaunchOrder, CountsNoCallThatIsOver) {
  Worlds worlds(3);
  EXPECT_THAT(worlds.call(1, 100), IsEmpty());
  worlds.orders[0]->ended(&worlds.streams[0]);  // the host has waited for it
  EXPECT_THAT(worlds.call(2, 100), IsEmpty());
  worlds.orders[1].reset();
  EXPECT_THAT(worlds.call(3, 132), IsEmpty());
}

TEST(LaunchOrder, LeavesCapturesAlone) {
  Worlds worlds(3);
  EXPECT_THAT(worlds.call(1, 100), IsEmpty());
  worlds.streams[1].capture = 7;
  EXPECT_THAT(worlds.call(2, 100), IsEmpty());  // a graph waits for nothing outside of it
  worlds.streams[0].capture = 8;
  EXPECT_THAT(worlds.call(3, 100), IsEmpty());  // an event there would belong to the graph
}

TEST(CaptureMode, IsRelaxedWithinACallAlone) {
  Worlds worlds(1);
  StreamOrder& order = *worlds.orders[0];
  test::FakeStream& stream = worlds.streams[0];
  stream.capture = 7;
  order.then(&stream, [&](bool) { EXPECT_EQ(worlds.calls.mode, StreamCalls::kRelaxed); });
  EXPECT_EQ(worlds.calls.mode, 0);
  EXPECT_THROW(order.then(&stream, [](bool) { throw RuntimeFailure("no memory"); }), RuntimeFailure);
  EXPECT_EQ(worlds.calls.mode, 0);
}

TEST(LaunchOrder, NeedsNoEventWithinAStream) {
  Worlds worlds(2);
  worlds.streams[1].number = 1;
  EXPECT_THAT(worlds.call(1, 100), IsEmpty());
  EXPECT_THAT(worlds.call(2, 100), IsEmpty());
}

}  // namespace
}  // namespace tandem::c
