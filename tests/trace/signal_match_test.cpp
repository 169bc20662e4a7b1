#include "trace/gpu/signal_match.h"

#include <gtest/gtest.h>

namespace tandem::trace {
namespace {

Sent set(int pe, Size offset, Epoch value, Time time, std::uint32_t lane = 0) {
  return {{pe, offset}, value, SignalOp::kSet, 0, lane, time};
}
Sent added(int pe, Size offset, Time time) { return {{pe, offset}, 1, SignalOp::kAdd, 0, 0, time}; }
Awaited wait(int pe, Size offset, Size words, Epoch value, Time begin, Time end) {
  return {{pe, offset}, words, value, Cmp::kGe, 0, begin, end};
}

TEST(SignalMatch, FirstChangeThatIsEnough) {
  SignalMatch match;
  match.add_signal(set(1, 64, 3, 300));
  match.add_signal(set(1, 64, 1, 100));
  match.add_signal(set(1, 64, 2, 200));
  match.add_signal(set(0, 64, 2, 50));  // another PE's word
  match.sort();
  EXPECT_EQ(match.released_by(wait(1, 64, 1, 2, 0, 400))->time, 200);
  EXPECT_EQ(match.released_by(wait(1, 64, 1, 1, 0, 400))->time, 100);
  EXPECT_FALSE(match.released_by(wait(1, 64, 1, 4, 0, 400)));
  EXPECT_FALSE(match.released_by(wait(1, 72, 1, 1, 0, 400)));
}

TEST(SignalMatch, LastOfSeveralWords) {
  SignalMatch match;
  match.add_signal(set(0, 0, 5, 10, 1));
  match.add_signal(set(0, 8, 5, 30, 2));
  match.add_signal(set(0, 16, 5, 20, 3));
  match.sort();
  const auto released = match.released_by(wait(0, 0, 3, 5, 0, 40));
  ASSERT_TRUE(released);
  EXPECT_EQ(released->lane, 2U);
  EXPECT_FALSE(match.released_by(wait(0, 0, 4, 5, 0, 40)));  // no PE is known to have changed the fourth
}

TEST(SignalMatch, ComparesAsTheWaitDoes) {
  SignalMatch match;
  match.add_signal(set(0, 0, 4, 10));
  match.add_signal(set(0, 0, 7, 20));
  match.sort();
  Awaited equal = wait(0, 0, 1, 7, 0, 40);
  equal.cmp = Cmp::kEq;
  EXPECT_EQ(match.released_by(equal)->time, 20);
  Awaited greater = wait(0, 0, 1, 4, 0, 40);
  greater.cmp = Cmp::kGt;
  EXPECT_EQ(match.released_by(greater)->time, 20);
}

TEST(SignalMatch, LastAdditionBeforeTheEnd) {
  SignalMatch match;
  for (const Time time : {10, 20, 30}) match.add_signal(added(0, 0, time));
  match.sort();
  EXPECT_EQ(match.released_by(wait(0, 0, 1, 2, 0, 25))->time, 20);
}

TEST(SignalMatch, PacketsThatOverlap) {
  SignalMatch match;
  const auto packets = [](Size offset, Size bytes, Epoch flag, Time time) {
    return Sent{{2, offset}, flag, SignalOp::kSet, bytes, 0, time};
  };
  match.add_packets(packets(0, 512, 7, 10));
  match.add_packets(packets(512, 512, 7, 30));
  match.add_packets(packets(1024, 512, 7, 20));
  match.add_packets(packets(512, 512, 8, 99));
  match.sort();
  const auto get = [](Size offset, Size bytes, Epoch flag) {
    return Awaited{{2, offset}, 1, flag, Cmp::kGe, bytes, 0, 100};
  };
  EXPECT_EQ(match.brought_by(get(0, 512, 7))->time, 10);
  EXPECT_EQ(match.brought_by(get(0, 513, 7))->time, 30);
  EXPECT_EQ(match.brought_by(get(1000, 100, 7))->time, 30);
  EXPECT_EQ(match.brought_by(get(1024, 8, 7))->time, 20);
  EXPECT_EQ(match.brought_by(get(600, 8, 8))->time, 99);
  EXPECT_FALSE(match.brought_by(get(1536, 8, 7)));
  EXPECT_FALSE(match.brought_by(get(0, 8, 9)));
}

}  // namespace
}  // namespace tandem::trace
