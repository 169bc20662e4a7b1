// Graphs and plain calls of one world, in the order of their launches.
#include <gmock/gmock.h>

#include "c_api/stream_calls.h"

namespace tandem::c {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

void call(LastCall& order, test::FakeStream& stream) {
  static_cast<StreamOrder&>(order).then(&stream, [](bool) {});
}

TEST(GraphOrder, LeadsFromPlainCallsToGraphsAndBack) {
  const test::FakeStreamCalls calls;
  LaunchOrder launches;
  LastCall order(calls, launches, 132, true);
  test::FakeStream plain{1}, captured{2, 7}, branch{3, 7}, other{4, 8};
  call(order, plain);
  call(order, captured);
  EXPECT_THAT(captured.waits_in_graph, ElementsAre(1));
  call(order, captured);
  call(order, branch);
  EXPECT_THAT(captured.waits_in_graph, ElementsAre(1));  // one wait for each graph
  EXPECT_THAT(branch.waits_in_graph, IsEmpty());
  EXPECT_THAT(branch.waited_for, ElementsAre(2));
  EXPECT_THAT(captured.records_before, ElementsAre(nullptr, &captured));  // records of a graph follow each other
  EXPECT_THAT(branch.records_before, ElementsAre(&captured));
  call(order, plain);
  EXPECT_THAT(plain.waited_for, ElementsAre(3));
  call(order, other);
  EXPECT_THAT(other.waits_in_graph, ElementsAre(1));
  EXPECT_THAT(other.records_before, ElementsAre(nullptr));
  call(order, plain);
  EXPECT_THAT(plain.waited_for, ElementsAre(3, 4));
}

TEST(GraphOrder, IsLeftToTheProgramUnlessItIsWanted) {
  const test::FakeStreamCalls calls;
  LaunchOrder launches;
  LastCall order(calls, launches, 132, false);
  test::FakeStream plain{1}, captured{2, 7};
  for (test::FakeStream* const stream : {&plain, &captured, &plain}) call(order, *stream);
  EXPECT_THAT(captured.waits_in_graph, IsEmpty());
  EXPECT_THAT(plain.waited_for, IsEmpty());
}

TEST(GraphOrder, RecordsNothingInAStreamThatIsCapturedMeanwhile) {
  const test::FakeStreamCalls calls;
  LaunchOrder launches;
  LastCall order(calls, launches, 132, true);
  test::FakeStream plain{1}, captured{2, 7};
  call(order, plain);
  plain.capture = 7;
  call(order, captured);
  EXPECT_THAT(captured.waits_in_graph, ElementsAre(0));  // an event that was never recorded is complete
}

}  // namespace
}  // namespace tandem::c
