#include "tandem/timeline.h"

#include <gtest/gtest.h>

#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <sstream>

#include "trace/synthetic_timeline.h"

namespace tandem::trace {
namespace {

using nlohmann::json;

json events_of(const Timeline& timeline) {
  std::ostringstream out;
  write_chrome_trace(timeline, out);
  return json::parse(out.str()).at("traceEvents");
}

Timeline small_gemm() {
  testing::Shape shape;
  shape.pes = 3;
  shape.sms = 5;
  return testing::synthetic_gemm(shape);
}

TEST(ChromeTrace, EveryLaneHasANameAndAPlace) {
  const Timeline timeline = small_gemm();
  std::map<int, std::string> processes;
  std::map<std::size_t, std::string> threads;
  std::set<std::size_t> places;
  for (const json& event : events_of(timeline)) {
    if (event.at("ph") != "M") continue;
    if (event.at("name") == "process_name") processes[event.at("pid")] = event.at("args").at("name");
    if (event.at("name") == "thread_name") threads[event.at("tid")] = event.at("args").at("name");
    if (event.at("name") == "thread_sort_index") places.insert(event.at("args").at("sort_index").get<std::size_t>());
  }
  EXPECT_EQ(processes, (std::map<int, std::string>{{0, "PE 0"}, {1, "PE 1"}, {2, "PE 2"}}));
  ASSERT_EQ(threads.size(), timeline.lanes.size());
  EXPECT_EQ(places.size(), timeline.lanes.size());
  for (const auto& [lane, text] : threads) EXPECT_EQ(text, timeline.lanes[lane].name);
}

TEST(ChromeTrace, EverySpanIsThereInOrderOfTime) {
  const Timeline timeline = small_gemm();
  std::size_t spans = 0;
  double last = 0;
  double sum = 0;
  for (const json& event : events_of(timeline)) {
    if (event.at("ph") == "M") continue;
    EXPECT_GE(event.at("ts").get<double>(), last);
    last = event.at("ts").get<double>();
    if (event.at("ph") != "X") continue;
    ++spans;
    sum += event.at("dur").get<double>();
    const Lane& lane = timeline.lanes.at(event.at("tid").get<std::size_t>());
    EXPECT_EQ(event.at("pid").get<int>(), lane.pe);
  }
  double expected = 0;
  for (const Span& span : timeline.spans) expected += static_cast<double>(span.end - span.begin) / kMicrosecond;
  EXPECT_EQ(spans, timeline.spans.size());
  EXPECT_NEAR(sum, expected, 1e-3);
}

TEST(ChromeTrace, EveryArrowLeavesAndArrivesWithinASpan) {
  const Timeline timeline = small_gemm();
  const json events = events_of(timeline);
  const auto inside_a_span = [&](const json& flow) {
    for (const json& event : events) {
      if (event.at("ph") != "X" || event.at("tid") != flow.at("tid")) continue;
      const double begin = event.at("ts");
      const double end = begin + event.at("dur").get<double>();
      if (begin <= flow.at("ts").get<double>() && flow.at("ts").get<double>() < end) return true;
    }
    return false;
  };
  std::map<std::size_t, const json*> starts;
  std::size_t ends = 0;
  for (const json& event : events) {
    if (event.at("ph") == "s") {
      EXPECT_TRUE(starts.emplace(event.at("id").get<std::size_t>(), &event).second) << event;
      EXPECT_TRUE(inside_a_span(event)) << event;
    }
    if (event.at("ph") == "f") {
      ++ends;
      ASSERT_TRUE(starts.contains(event.at("id").get<std::size_t>())) << "arrives before it leaves: " << event;
      EXPECT_EQ(event.at("name"), starts.at(event.at("id").get<std::size_t>())->at("name"));
      EXPECT_EQ(event.at("bp"), "e");
      EXPECT_TRUE(inside_a_span(event)) << event;
    }
  }
  EXPECT_EQ(starts.size(), timeline.arrows.size());
  EXPECT_EQ(ends, timeline.arrows.size());
}

TEST(ChromeTrace, KeepsEveryPicosecondAndEveryLabel) {
  Timeline timeline;
  timeline.title = "quote \" and \\";
  const auto lane = timeline.add_lane(7, LaneKind::kSm, "sm 0 </script> \"\n\x01 \xC3\xA9 \xFF");
  const std::string label = "tile <0,1> & \t \xE2\x82\xAC";
  timeline.add(Span{lane, SpanKind::kStore, timeline.intern(label), 1'000'001, 1'000'004, 16});
  std::ostringstream out;
  write_chrome_trace(timeline, out);
  EXPECT_NE(out.str().find("\"ts\":1.000001,\"dur\":0.000003"), std::string::npos) << out.str();
  const json trace = json::parse(out.str());
  EXPECT_EQ(trace.at("otherData").at("title"), timeline.title);
  const json& span = trace.at("traceEvents").back();
  EXPECT_EQ(span.at("name"), label);
  EXPECT_EQ(span.at("pid"), 7);
  EXPECT_EQ(span.at("args").at("bytes"), 16);
  const std::string thread = trace.at("traceEvents").at(3).at("args").at("name");
  EXPECT_EQ(thread, "sm 0 </script> \"\n\x01 \xC3\xA9 \xEF\xBF\xBD");
}

TEST(ChromeTrace, AnArrowWithoutLatencyDoesNotRunBackwards) {
  Timeline timeline;
  const auto a = timeline.add_lane(0, LaneKind::kSm, "a");
  const auto b = timeline.add_lane(0, LaneKind::kSm, "b");
  timeline.add(Span{a, SpanKind::kSignal, 0, 5000, 5000, 0});
  timeline.add(Span{b, SpanKind::kWait, 0, 0, 5000, 0});
  timeline.add(Arrow{a, b, 0, 5000, 5000});
  double out = -1;
  double in = -1;
  for (const json& event : events_of(timeline)) {
    if (event.at("ph") == "s") out = event.at("ts");
    if (event.at("ph") == "f") in = event.at("ts");
  }
  EXPECT_EQ(out, 0.005);
  EXPECT_GE(in, out);
}

TEST(ChromeTrace, TimeBeginsAtZeroAndTransfersSayWhoSentThem) {
  Timeline timeline;
  const auto sm = timeline.add_lane(0, LaneKind::kSm, "sm 3");
  const auto link = timeline.add_lane(0, LaneKind::kLinkOut, "link out pe 0");
  timeline.begin = 7 * kMicrosecond;
  timeline.add(Span{sm, SpanKind::kStore, 0, 7 * kMicrosecond, 9 * kMicrosecond, 64});
  timeline.add(Span{link, SpanKind::kTransfer, 0, 8 * kMicrosecond, 9 * kMicrosecond, 64, sm, 7 * kMicrosecond});
  const json events = events_of(timeline);
  const json& store = events.at(events.size() - 2);
  const json& transfer = events.back();
  EXPECT_EQ(store.at("ts"), 0);
  EXPECT_EQ(transfer.at("ts"), 1);
  EXPECT_EQ(transfer.at("args").at("queued_us"), 1);
  EXPECT_EQ(transfer.at("args").at("by"), "PE 0, sm 3");
}

TEST(ChromeTrace, OfTooManySpansThePesOfTheCriticalPathAreWritten) {
  Timeline timeline;
  timeline.pes = 2;
  const auto many = timeline.add_lane(0, LaneKind::kSm, "sm 0");
  const auto last = timeline.add_lane(1, LaneKind::kSm, "sm 0");
  for (Time i = 0; i < 500'000; ++i) timeline.add(Span{many, SpanKind::kCompute, 0, i, i + 1, 0});
  timeline.add(Span{last, SpanKind::kCompute, 0, 0, 600'000, 0});
  timeline.end = 600'000;
  const json events = events_of(timeline);
  EXPECT_LT(events.size(), 10U);
  for (const json& event : events) EXPECT_EQ(event.at("pid"), 1);
  EXPECT_NE(events.dump().find("1 of 2 PEs"), std::string::npos) << events.dump();
}

TEST(ChromeTrace, SameTimelineSameBytes) {
  std::ostringstream first;
  std::ostringstream second;
  write_chrome_trace(small_gemm(), first);
  write_chrome_trace(small_gemm(), second);
  EXPECT_EQ(first.str(), second.str());
}

}  // namespace
}  // namespace tandem::trace
