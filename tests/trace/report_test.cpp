#include "tandem/timeline.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <sstream>

#include "trace/report/report_page.h"
#include "trace/synthetic_timeline.h"
#include "trace/timeline/analysis.h"
#include "trace/timeline/chosen_pes.h"
#include "trace/timeline/overview.h"
#include "trace/timeline/text.h"

namespace tandem::trace {
namespace {

using nlohmann::json;

std::string page_of(const Report& report) {
  std::ostringstream out;
  write_report(report, out);
  return out.str();
}

json data_of(const std::string& page) {
  const std::string open = "<script type=\"application/json\" id=\"data\">";
  const std::size_t begin = page.find(open) + open.size();
  return json::parse(page.substr(begin, page.find("</script>", begin) - begin));
}

std::size_t count(const std::string& text, const std::string& what) {
  std::size_t n = 0;
  for (std::size_t at = text.find(what); at != std::string::npos; at = text.find(what, at + 1)) ++n;
  return n;
}

Report hostile() {
  Report report;
  report.title = "</title><script>alert(1)</script> & \"quotes\"";
  report.summary = {{"<b>key</b>", "</script><img src=x onerror=alert(1)>"}};
  Timeline timeline;
  timeline.title = "a <!-- b";
  timeline.pes = 1;
  const auto lane = timeline.add_lane(0, LaneKind::kSm, "</script>");
  timeline.add(
      Span{lane, SpanKind::kCompute, timeline.intern("\xE4\xBD\xA0 </SCRIPT> \"\\ \xF0\x9F\x98\x80"), 0, 5, 0});
  timeline.end = 5;
  report.timelines.push_back(timeline);
  return report;
}

TEST(Report, TextCannotLeaveItsPlace) {
  const Report report = hostile();
  const std::string page = page_of(report);
  EXPECT_EQ(count(page, "</script>"), 2U);
  EXPECT_EQ(count(page, "</SCRIPT>"), 0U);
  EXPECT_EQ(count(page, "<!--"), 0U);
  EXPECT_EQ(count(page, "<img"), 0U);
  const json data = data_of(page);
  EXPECT_EQ(data.at("title"), report.title);
  EXPECT_EQ(data.at("summary").at(0).at(1), report.summary[0].second);
  EXPECT_EQ(data.at("timelines").at(0).at("labels").at(1), report.timelines[0].label(1));
  EXPECT_EQ(data.at("timelines").at(0).at("lanes").at(0).at(2), "</script>");
}

TEST(Report, HoldsEveryFileOfThePage) {
  const std::string page = page_of({});
  for (const char* file : {"page", "style", "model", "layout", "paint", "marks", "find", "main"}) {
    const std::string_view text = report_file(file);
    EXPECT_FALSE(text.empty()) << file;
    EXPECT_EQ(count(page, std::string(text)), 1U) << file;
  }
}

TEST(Report, NeedsNoNetwork) {
  const std::string page = page_of(testing::synthetic_report({}));
  for (const char* word : {"http:", "https:", "src=", "@import", "url(", "fetch("})
    EXPECT_EQ(count(page, word), 0U) << word;
}

TEST(Report, DataHoldsEverySpanOnce) {
  testing::Shape shape;
  shape.sms = 20;
  const Report report = testing::synthetic_report(shape);
  const json data = data_of(page_of(report));
  for (std::size_t t = 0; t < report.timelines.size(); ++t) {
    const Timeline& timeline = report.timelines[t];
    const json& written = data.at("timelines").at(t);
    std::size_t spans = 0;
    Time sum = 0;
    for (const json& lane : written.at("spans")) {
      for (const json& flat : lane) {
        spans += flat.size() / 3;
        for (std::size_t i = 2; i < flat.size(); i += 3) sum += flat.at(i).get<Time>();
      }
    }
    Time expected = 0;
    for (const Span& span : timeline.spans) expected += span.end - span.begin;
    EXPECT_EQ(spans, timeline.spans.size());
    EXPECT_EQ(sum, expected);
    EXPECT_EQ(written.at("arrows").size(), 5 * timeline.arrows.size());
    EXPECT_FALSE(written.at("path").empty());
  }
}

TEST(ChosenPes, AreAllWhereTheyFitElseThoseOfThePathAndTheLastToEnd) {
  Timeline timeline;
  for (int pe = 0; pe < 4; ++pe) timeline.add_lane(pe, LaneKind::kSm, "sm 0");
  for (std::uint32_t pe = 0; pe < 4; ++pe)
    timeline.add(Span{pe, SpanKind::kCompute, 0, 0, pe == 1 ? 90 : 10 * (pe + 1), 0});
  timeline.add(Span{3, SpanKind::kStore, 0, 95, 100, 0});
  timeline.add(Arrow{1, 3, 0, 90, 95});
  const auto path = critical_path(timeline);  // PE 1, then PE 3
  EXPECT_EQ(chosen_pes(timeline, path, 5), (std::vector<int>{0, 1, 2, 3}));
  EXPECT_EQ(chosen_pes(timeline, path, 4), (std::vector<int>{1, 2, 3}));
  EXPECT_EQ(chosen_pes(timeline, path, 3), (std::vector<int>{1, 3}));
  EXPECT_EQ(chosen_pes(timeline, path, 0), (std::vector<int>{1}));
  EXPECT_EQ(chosen_pes(timeline, path, 5, 2), (std::vector<int>{1, 3}));
}

TEST(PartOfPes, KeepsWhatIsOfThePesAndRenumbersIt) {
  testing::Shape shape;
  shape.sms = 6;
  const Timeline whole = testing::synthetic_gemm(shape);
  const std::size_t per_pe = whole.spans.size() / 4;  // the four PEs do alike
  const auto is_kept = [](int pe) { return pe == 1 || pe == 3; };
  const PartOfPes part = part_of(whole, critical_path(whole), {1, 3});
  EXPECT_EQ(part.timeline.spans.size(), 2 * per_pe);
  EXPECT_EQ(part.timeline.lanes.size(), whole.lanes.size() / 2);
  EXPECT_EQ(part.timeline.duration(), whole.duration());
  EXPECT_EQ(part.timeline.labels(), whole.labels());
  EXPECT_FALSE(part.timeline.arrows.empty());
  for (const Arrow& arrow : part.timeline.arrows) {
    EXPECT_TRUE(is_kept(part.timeline.lanes.at(arrow.from_lane).pe));
    EXPECT_TRUE(is_kept(part.timeline.lanes.at(arrow.to_lane).pe));
  }
  std::vector<Time> expected;  // ends of the path's spans on these PEs
  for (const PathStep& step : critical_path(whole)) {
    const Span& span = whole.spans[step.span];
    if (is_kept(whole.lanes[span.lane].pe)) expected.push_back(span.end);
  }
  std::vector<Time> kept;
  for (const PathStep& step : part.path) kept.push_back(part.timeline.spans.at(step.span).end);
  EXPECT_EQ(kept, expected);
}

TEST(Overview, SharesOfEachNodeOverTime) {
  Timeline timeline;
  timeline.pes = 4;
  timeline.pes_per_node = 2;
  timeline.end = 100;
  for (int pe = 0; pe < 4; ++pe) timeline.add_lane(pe, LaneKind::kNicOut, "nic");
  timeline.add(Span{0, SpanKind::kTransfer, 0, 0, 50, 0});
  timeline.add(Span{1, SpanKind::kTransfer, 0, 0, 25, 0});
  timeline.add(Span{3, SpanKind::kTransfer, 0, 90, 100, 0});
  timeline.add(Span{2, SpanKind::kWait, 0, 0, 100, 0});  // not busy
  const Overview overview = overview_of(timeline, 2);
  ASSERT_EQ(overview.parts.size(), 1U);
  const Overview::Part& part = overview.parts[0];
  EXPECT_EQ(part.name, "NICs out");
  EXPECT_EQ(part.nodes, 2);
  EXPECT_EQ(part.percent, (std::vector<std::uint8_t>{75, 0, 0, 10}));
  EXPECT_EQ(part.least, 5);
  EXPECT_EQ(part.most, 38);
}

TEST(Report, EveryOutputSaysWhetherItIsAPrediction) {
  Report report = testing::synthetic_report({.pes = 2, .sms = 2});
  report.timelines[0].predicted = true;
  report.timelines[0].machine = "h200x4";
  report.timelines[1].machine = "2 H200";
  std::ostringstream picture, predicted, measured;
  write_svg(report, picture);
  write_chrome_trace(report.timelines[0], predicted);
  write_chrome_trace(report.timelines[1], measured);
  const std::string page = page_of(report);
  for (const std::string& text : {page, picture.str(), predicted.str()})
    EXPECT_GE(count(text, "predicted with the machine model h200x4"), 1U);
  for (const std::string& text : {page, picture.str(), measured.str()})
    EXPECT_GE(count(text, "measured on 2 H200"), 1U);
  EXPECT_EQ(count(measured.str(), "predicted"), 0U);
}

TEST(Svg, ShowsTitlesAndEscapesThem) {
  std::ostringstream out;
  write_svg(hostile(), out);
  EXPECT_EQ(count(out.str(), "<script"), 0U);
  EXPECT_EQ(count(out.str(), "&lt;/title&gt;&lt;script&gt;"), 2U);  // label and heading
  EXPECT_EQ(count(out.str(), "a &lt;!-- b: 5 ps"), 1U);
}

TEST(Svg, SaysHowManyPesItLeavesOut) {
  testing::Shape shape;
  shape.pes = 6;
  shape.sms = 2;
  std::ostringstream out;
  write_svg(testing::synthetic_report(shape), out);
  EXPECT_EQ(count(out.str(), ", 4 of 6 PEs"), 2U);
}

TEST(Svg, BlocksOfAnSmDivideItWhileSeveralAreBusy) {
  Timeline timeline;
  timeline.pes = 1;
  timeline.end = 445 * kMicrosecond;  // one for each step of the chart
  for (const char* lane : {"sm 0", "sm 0.1", "sm 1", "sm 1 / role 0", "sm 1 / role 1"})
    timeline.add_lane(0, LaneKind::kSm, lane);
  const auto add = [&](std::uint32_t lane, SpanKind kind, Time begin, Time end) {
    timeline.add({.lane = lane, .kind = kind, .begin = begin * kMicrosecond, .end = end * kMicrosecond});
  };
  for (const std::uint32_t lane : {0U, 2U}) add(lane, SpanKind::kCompute, 0, 222);  // a block on each SM
  add(1, SpanKind::kLoad, 222, 445);                                                // one SM has two, the other none
  add(0, SpanKind::kStore, 222, 445);
  std::ostringstream out;
  Report report;
  report.timelines.push_back(timeline);
  write_svg(report, out);
  // The chart of the SMs lies between 72 and 92.
  EXPECT_EQ(count(out.str(), "M96 92H540V72H96z"), 1U);
  EXPECT_EQ(count(out.str(), "M540 92H986V87H540z"), 1U);  // a quarter: half of one of two SMs
  EXPECT_EQ(count(out.str(), "M540 87H986V82H540z"), 1U);
}

TEST(Svg, EmptyReportIsAPictureToo) {
  std::ostringstream out;
  Report report;
  report.timelines.emplace_back();
  write_svg(report, out);
  EXPECT_EQ(count(out.str(), "</svg>"), 1U);
  EXPECT_EQ(count(out.str(), "nan"), 0U);
}

TEST(Text, Times) {
  EXPECT_EQ(microseconds(0), "0");
  EXPECT_EQ(microseconds(12'345'678), "12.345678");
  EXPECT_EQ(microseconds(-500'000), "-0.5");
  EXPECT_EQ(short_time(0), "0 ps");
  EXPECT_EQ(short_time(850), "850 ps");
  EXPECT_EQ(short_time(12'340), "12.3 ns");
  EXPECT_EQ(short_time(482'000'000), "482 us");
  EXPECT_EQ(short_time(1'250'000'000), "1.25 ms");
}

}  // namespace
}  // namespace tandem::trace
