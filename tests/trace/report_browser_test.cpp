// Opens reports in headless Chromium and reads back what the page says it drew.

#include <gtest/gtest.h>
#include <sys/wait.h>

#include <cstdlib>
#include <string>

#include "tandem/timeline.h"
#include "trace/synthetic_timeline.h"
#include "trace/temporary_folder.h"

namespace tandem::trace {
namespace {

std::string browser() {
  for (const char* name : {"chromium", "chromium-browser", "google-chrome"}) {
    if (std::system(("command -v " + std::string(name) + " >/dev/null 2>&1").c_str()) == 0) return name;
  }
  return "";
}

class ReportBrowserTest : public ::testing::Test {
 protected:
  void SetUp() override {
    browser_ = browser();
    if (browser_.empty()) GTEST_SKIP() << "no chromium, chromium-browser or google-chrome on PATH";
  }

  /// The page's document after its script ran. `script` is run behind the page's own.
  std::string document(const Report& report, const std::string& script = "") {
    const std::string file = folder_ / "report.html";
    write_report(report, file);
    if (!script.empty()) append(file, script);
    // --no-sandbox: the sandbox refuses to run as root, as in containers; the page is our own file.
    const std::string command = browser_ + " --headless --no-sandbox --disable-gpu --disable-dev-shm-usage" +
                                " --user-data-dir='" + (folder_ / "profile") + "' --window-size=1400,1000" +
                                " --virtual-time-budget=10000 --dump-dom 'file://" + file + "' >'" + (folder_ / "dom") +
                                "' 2>'" + (folder_ / "log") + "'";
    const int status = std::system(command.c_str());
    EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << testing::read_file(folder_ / "log");
    return testing::read_file(folder_ / "dom");
  }

  /// Value of an attribute of the document's body; "none" where it is missing.
  static std::string body_attribute(const std::string& dom, const std::string& attribute) {
    const std::size_t body = dom.find("<body");
    const std::size_t close = dom.find('>', body);
    const std::size_t at = dom.find(" " + attribute + "=\"", body);
    if (body == std::string::npos || at == std::string::npos || at > close) return "none";
    const std::size_t begin = at + attribute.size() + 3;
    return dom.substr(begin, dom.find('"', begin) - begin);
  }

 private:
  static void append(const std::string& file, const std::string& script) {
    std::string page = testing::read_file(file);
    page.insert(page.rfind("</body>"), "<script>" + script + "</script>");
    std::ofstream(file, std::ios::binary) << page;
  }

  std::string browser_;
  testing::TemporaryFolder folder_;
};

TEST_F(ReportBrowserTest, DrawsEveryLane) {
  const Report report = testing::synthetic_report({});
  const std::string dom = document(report);
  const std::size_t lanes = report.timelines[0].lanes.size() + report.timelines[1].lanes.size();
  EXPECT_EQ(body_attribute(dom, "data-error"), "none");
  EXPECT_EQ(body_attribute(dom, "data-rendered"), std::to_string(lanes));
}

TEST_F(ReportBrowserTest, DrawsFewLanesAsRowsAndNoLanesAsNothing) {
  testing::Shape shape;
  shape.pes = 2;
  shape.sms = 3;
  Report report = testing::synthetic_report(shape);
  report.timelines.emplace_back().title = "empty";
  const std::string dom = document(report);
  EXPECT_EQ(body_attribute(dom, "data-error"), "none");
  EXPECT_EQ(body_attribute(dom, "data-rendered"), std::to_string(2 * 2 * (3 + 4)));
}

TEST_F(ReportBrowserTest, ReadsTheTimesBack) {
  testing::Shape shape;
  shape.sms = 3;
  const Report report = testing::synthetic_report(shape);
  Time sum = 0;
  for (const Timeline& timeline : report.timelines) {
    for (const Span& span : timeline.spans) sum += span.begin / kNanosecond + span.end / kNanosecond;
  }
  const std::string dom = document(report, R"js(
    let sum = 0;
    for (const {timeline} of panels) {
      for (const spans of [...timeline.leaves, ...timeline.containers]) {
        for (let i = 0; i < spans.size; ++i) sum += Math.floor(spans.begin[i] / 1000) + Math.floor(spans.end[i] / 1000);
      }
    }
    document.body.dataset.result = sum;
  )js");
  EXPECT_EQ(body_attribute(dom, "data-result"), std::to_string(sum));
}

TEST_F(ReportBrowserTest, ShowsTextAsText) {
  Report report;
  report.title = "<img src=x onerror=\"document.body.dataset.error='injected'\">";
  report.summary = {{"key", report.title}};
  Timeline timeline;
  timeline.title = "</script><script>document.body.dataset.error='injected'</script>";
  timeline.pes = 1;
  const auto lane = timeline.add_lane(0, LaneKind::kSm, report.title);
  timeline.add(Span{lane, SpanKind::kCompute, timeline.intern(timeline.title), 0, 1000, 0});
  timeline.end = 1000;
  report.timelines.push_back(timeline);
  const std::string dom = document(report);
  EXPECT_EQ(body_attribute(dom, "data-error"), "none");
  EXPECT_EQ(body_attribute(dom, "data-rendered"), "1");
}

TEST_F(ReportBrowserTest, ZoomHoverHoldAndKeysWork) {
  // The span under the pointer is looked up before and after the zoom, which must keep the time under the pointer.
  const std::string dom = document(testing::synthetic_report({}), R"js(
    const panel = panels[1], box = panel.rowsBox, row = panel.rows.find(r => r.type === 'dense');
    const send = (type, Type, options) => {
      const at = box.getBoundingClientRect();
      box.dispatchEvent(new Type(type, {bubbles: true, cancelable: true, clientX: at.left + 500, clientY: at.top + row.y + 40, pointerId: 1, ...options}));
    };
    box.setPointerCapture = () => {};
    const time = timeOf(500);
    for (let i = 0; i < 10; ++i) send('wheel', WheelEvent, {deltaY: -60});
    const kept = Math.abs(timeOf(500) - time) < 1000 && view.to - view.from < longest / 5;
    send('pointermove', PointerEvent);
    const shown = !tip.hidden && tip.textContent.includes('sm 40');
    send('pointerdown', PointerEvent);
    send('pointerup', PointerEvent);
    const first = held && held.index;
    box.dispatchEvent(new KeyboardEvent('keydown', {key: 'ArrowRight'}));
    const next = held && held.index === first + 1;
    box.dispatchEvent(new KeyboardEvent('keydown', {key: '0'}));
    document.body.dataset.result = [kept, shown, next, view.from <= 0 && view.to >= longest].join(' ');
  )js");
  EXPECT_EQ(body_attribute(dom, "data-error"), "none");
  EXPECT_EQ(body_attribute(dom, "data-result"), "true true true true");
}

/// Two PEs, each with a link that is busy for a tenth of the time, in spans far narrower than a pixel.
Report slightly_busy_links() {
  Report report;
  Timeline timeline;
  timeline.pes = 2;
  for (int pe = 0; pe < 2; ++pe) {
    const auto lane = timeline.add_lane(pe, LaneKind::kLinkOut, "link out pe " + std::to_string(pe));
    for (Time i = 0; i < 30'000; ++i) timeline.add(Span{lane, SpanKind::kTransfer, 0, i * 1000, i * 1000 + 100, 1});
  }
  timeline.end = 30'000 * 1000;
  report.timelines.push_back(timeline);
  return report;
}

TEST_F(ReportBrowserTest, ASlightlyBusyLinkIsNotDrawnAsABusyOne) {
  // Counts the pixels that have the colour of transfers, of an open lane and of a folded one.
  const std::string dom = document(slightly_busy_links(), R"js(
    const panel = panels[0];
    panel.groups[0].open = true;
    panel.groups[1].open = false;
    panel.layout();
    showPath = false;
    drawPanel(panel, true);
    const share = panel.rows.map(row => {
      const x0 = Math.ceil(xOf(0)) + 20, width = Math.floor(xOf(longest)) - x0 - 20;
      const {data: rgba} = panel.context.getImageData(x0, row.y, width, row.height);
      const [r, g, b] = [1, 3, 5].map(i => parseInt(paint.kinds[KIND.transfer].slice(i, i + 2), 16));
      let seen = 0;
      for (let i = 0; i < rgba.length; i += 4) seen += Math.abs(rgba[i] - r) + Math.abs(rgba[i + 1] - g) + Math.abs(rgba[i + 2] - b) < 30;
      return seen / (width * row.height);
    });
    document.body.dataset.result = share.map(s => s > 0.03 && s < 0.2).join(' ') + ' of ' + share.length;
  )js");
  EXPECT_EQ(body_attribute(dom, "data-error"), "none");
  EXPECT_EQ(body_attribute(dom, "data-result"), "true true of 2");
}

TEST_F(ReportBrowserTest, NamesOfLanesAreWhole) {
  Report report;
  Timeline timeline;
  timeline.pes = 1;
  timeline.end = 1000;
  const auto lane = timeline.add_lane(0, LaneKind::kNicOut, "nic 15 of node 1023 out");
  timeline.add(Span{lane, SpanKind::kTransfer, 0, 0, 1000, 1});
  report.timelines.push_back(timeline);
  const std::string dom = document(report, R"js(
    const name = [...document.querySelectorAll('.names span')].find(span => span.textContent.startsWith('nic'));
    document.body.dataset.result = name.scrollWidth <= name.clientWidth;
  )js");
  EXPECT_EQ(body_attribute(dom, "data-result"), "true");
}

TEST_F(ReportBrowserTest, RemarksKeepTheirLinesAndLeadToTheirPlaces) {
  Report report = testing::synthetic_report({});
  const Timeline& timeline = report.timelines[0];
  const Span& last = timeline.spans.back();
  report.remarks.push_back({.title = "finding 1: hang",
                            .text = "deadlock:\n  PE 0 waits\n  PE 1 waits",
                            .facts = {{"replay", "tandem check x"}},
                            .places = {{"wait at x.h:35", 0, last.lane, last.begin + 1}}});
  const std::string dom = document(report, R"js(
    const box = document.querySelector('.remark');
    const lines = box.querySelector('p').getClientRects().length && box.querySelector('p').clientHeight > 40;
    box.querySelector('button').click();
    const there = held && held.panel === panels[0] && view.from <= held.begin;
    document.body.dataset.result = [lines, there, box.textContent.includes('tandem check x')].join(' ');
  )js");
  EXPECT_EQ(body_attribute(dom, "data-error"), "none");
  EXPECT_EQ(body_attribute(dom, "data-result"), "true true true");
}

/// Two PEs with one lane each: PE 0 stores 4 KiB for a quarter of the time, PE 1 computes for half of it.
Report two_lanes() {
  Report report;
  Timeline timeline;
  timeline.pes = 2;
  timeline.end = 400 * kNanosecond;
  const auto store = timeline.intern("store of halo"), tile = timeline.intern("tile 3");
  for (int pe = 0; pe < 2; ++pe) timeline.add_lane(pe, LaneKind::kSm, "sm 0");
  timeline.add(Span{0, SpanKind::kStore, store, 0, 100 * kNanosecond, 4096});
  timeline.add(Span{1, SpanKind::kCompute, tile, 0, 100 * kNanosecond, 0});
  timeline.add(Span{1, SpanKind::kCompute, tile, 200 * kNanosecond, 300 * kNanosecond, 0});
  report.timelines.push_back(timeline);
  return report;
}

TEST_F(ReportBrowserTest, FindsSpansByTheirTextInTurn) {
  const std::string dom = document(two_lanes(), R"js(
    const box = document.getElementById('find'), found = document.getElementById('found');
    const type = text => { box.value = text; box.dispatchEvent(new Event('input')); return found.textContent; };
    const enter = shiftKey => { box.dispatchEvent(new KeyboardEvent('keydown', {key: 'Enter', shiftKey})); return found.textContent + ' at ' + held.begin / 1000; };
    panels[0].setOpen(false);
    document.body.dataset.result = [type('TILE'), enter(false), enter(false), enter(false), enter(true), panels[0].groups[1].open,
      type('compute'), type('pe 0, sm'), type('halos'), type('')].join('; ');
  )js");
  EXPECT_EQ(body_attribute(dom, "data-error"), "none");
  EXPECT_EQ(body_attribute(dom, "data-result"),
            "2; 1 of 2 at 0; 2 of 2 at 200; 1 of 2 at 0; 2 of 2 at 200; true; 2; 1; none; ");
}

TEST_F(ReportBrowserTest, ADragWithShiftMeasuresARow) {
  const std::string dom = document(two_lanes(), R"js(
    const panel = panels[0], box = panel.rowsBox, row = panel.rows[0], text = document.getElementById('measured');
    box.setPointerCapture = () => {};
    const send = (type, time) => {
      const at = box.getBoundingClientRect();
      box.dispatchEvent(new PointerEvent(type, {bubbles: true, clientX: at.left + xOf(time), clientY: at.top + row.y + 4, pointerId: 1, shiftKey: true}));
    };
    const from = view.from;
    send('pointerdown', 250000);
    send('pointermove', 50000);
    send('pointerup', 50000);
    drawPanel(panel, true);
    const lines = measure({...range, from: 50000, to: 250000}), [, store] = text.children;
    const near = Math.abs(range.from - 50000) < 2000 && Math.abs(range.to - 250000) < 2000 && view.from === from;
    box.dispatchEvent(new KeyboardEvent('keydown', {key: 'Escape'}));
    document.body.dataset.result = [near, store.textContent.startsWith('store 25% in 1 spans, 2.0'), lines.title, lines.lines.join(), text.hidden].join('; ');
  )js");
  EXPECT_EQ(body_attribute(dom, "data-error"), "none");
  EXPECT_EQ(
      body_attribute(dom, "data-result"),
      "true; true; 200 ns of PE 0, sm 0, from 0.05 us to 0.25 us; store,25% in 1 spans, 2.00 KiB, 10.2 GB/s; true");
}

TEST_F(ReportBrowserTest, PesCanStandInTheOrderOfTheirUse) {
  const std::string dom = document(two_lanes(), R"js(
    const sort = document.getElementById('sort'), order = () => panels[0].groups.map(group => group.pe).join(' ');
    const by = value => { sort.value = value; sort.dispatchEvent(new Event('change')); return order(); };
    document.body.dataset.result = [order(), by('busy'), by('number'), drawPanel(panels[0], true)].join('; ');
  )js");
  EXPECT_EQ(body_attribute(dom, "data-error"), "none");
  EXPECT_EQ(body_attribute(dom, "data-result"), "0 1; 1 0; 0 1; 2");
}

TEST_F(ReportBrowserTest, SeveralNodesHaveAHeatMap) {
  Report report = testing::synthetic_report({.sms = 3});
  report.timelines[0].pes_per_node = 2;
  const std::string dom = document(report, R"js(
    const heat = panels.map(panel => panel.rows.filter(row => row.type === 'heat'));
    const row = heat[0].find(r => r.name === 'links out'), mark = markAt(panels[0], xOf(longest / 100), row.y + row.height - 1);
    document.body.dataset.result = [heat[0].length, heat[1].length, describe(mark)[0]].join('; ');
  )js");
  EXPECT_EQ(body_attribute(dom, "data-error"), "none");
  EXPECT_EQ(body_attribute(dom, "data-result"), "4; 0; node 1, links out");
}

TEST_F(ReportBrowserTest, FoldingKeepsEveryLaneInThePicture) {
  const Report report = testing::synthetic_report({});
  const std::string dom = document(report, R"js(
    const drawn = open => panels.map(panel => { panel.setOpen(open); return drawPanel(panel, true); }).join('+');
    document.body.dataset.result = drawn(true) + ' ' + drawn(false);
  )js");
  const std::string lanes = std::to_string(report.timelines[0].lanes.size());
  EXPECT_EQ(body_attribute(dom, "data-result"), lanes + "+" + lanes + " " + lanes + "+" + lanes);
}

}  // namespace
}  // namespace tandem::trace
