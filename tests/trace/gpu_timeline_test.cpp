#include <gmock/gmock.h>

#include "tandem/signal.h"
#include "trace/gpu/gpu_profile.h"
#include "trace/gpu/gpu_spans.h"
#include "trace/gpu/gpu_work_times.h"
#include "trace/timeline/buffer_name.h"

namespace tandem::trace {
namespace {

using cuda::Record;
using cuda::RecordKind;

constexpr std::uint64_t kStride = 0x10000;  // of PEs' memory
constexpr std::int64_t kAhead = 5'000;      // of PE 1's clock, ns

Record record(RecordKind kind, std::uint64_t begin, std::uint32_t duration, std::uint64_t address,
              std::uint64_t payload, std::uint8_t role = 0) {
  return {begin, duration, kind, role, 0, 1, address, payload};
}
Record wait_for(std::uint64_t begin, std::uint32_t duration, std::uint64_t address, Epoch value) {
  Record wait = record(RecordKind::kWait, begin, duration, address, value);
  wait.detail = static_cast<std::uint8_t>(Cmp::kGe);
  return wait;
}

GpuWork kernel(int pe, const std::string& name, std::vector<std::vector<Record>> blocks) {
  GpuWork work;
  work.pe = pe;
  work.name = name;
  work.stream = "main";
  work.team = {0, 1, 2, pe, 2};
  work.blocks = std::move(blocks);
  return work;
}
GpuWork copy(int pe, Size bytes, std::vector<std::size_t> after) {
  GpuWork work;
  work.pe = pe;
  work.name = "copy";
  work.kind = SpanKind::kCopy;
  work.stream = "copies";
  work.bytes = bytes;
  work.after = std::move(after);
  return work;
}

GpuProfile two_pes(std::vector<GpuWork> work) {
  GpuProfile profile;
  profile.pes = 2;
  profile.work = std::move(work);
  const ClockOffset ahead{0, kAhead, 1, 700};
  profile.clocks = {ClockMap(), ClockMap(ahead, ahead)};
  profile.origin = 1'000;
  profile.signal_ns = 700;
  profile.place = [](std::uint64_t address) {
    return GpuPlace{static_cast<int>(address / kStride), static_cast<Size>(address % kStride)};
  };
  profile.name = [](std::uint64_t address) { return address % kStride < 256 ? "arrived" : "data"; };
  return profile;
}

/// PE 0 stores and signals all at 2,500; PE 1 waits from 2,000 to 3,600 of PE 0's clock.
std::vector<GpuWork> signal_and_wait() {
  return {kernel(0, "send",
                 {{record(RecordKind::kBlock, 2'000, 600, 17, 2),
                   record(RecordKind::kStore, 2'000, 400, kStride + 256, 4096),
                   record(RecordKind::kSignalAll, 2'400, 100, 8, 3)}}),
          kernel(1, "receive",
                 {{record(RecordKind::kBlock, 1'900 + kAhead, 1'800, 4, 1),
                   wait_for(2'000 + kAhead, 1'600, kStride + 8, 3)}})};
}

TEST(GpuTimeline, DrawsBlocksAndOperationsOnOneTimeScale) {
  GpuFindings findings;
  const Timeline timeline = to_timeline(two_pes(signal_and_wait()), findings);
  ASSERT_EQ(timeline.lanes.size(), 2U);
  EXPECT_EQ(timeline.lanes[0].name, "sm 17");
  EXPECT_EQ(timeline.lanes[1].pe, 1);
  EXPECT_EQ(timeline.lanes[1].name, "sm 4");
  ASSERT_EQ(timeline.spans.size(), 5U);
  const auto span = [&](SpanKind kind) {
    return *std::find_if(timeline.spans.begin(), timeline.spans.end(), [&](const Span& s) { return s.kind == kind; });
  };
  EXPECT_EQ(span(SpanKind::kStore).begin, 1'000 * kNanosecond);
  EXPECT_EQ(span(SpanKind::kStore).bytes, 4096);
  EXPECT_EQ(timeline.label(span(SpanKind::kStore).label), "store data");
  EXPECT_EQ(timeline.label(span(SpanKind::kWait).label), "wait arrived");
  EXPECT_EQ(span(SpanKind::kWait).begin, 1'000 * kNanosecond);  // PE 1's clock is ahead
  EXPECT_EQ(timeline.begin, 900 * kNanosecond);
  EXPECT_EQ(timeline.end, 2'700 * kNanosecond);
  EXPECT_EQ(findings.records, 3);
  EXPECT_EQ(findings.lost_records, 0);
}

TEST(GpuTimeline, TilesOfAGemmAreOnItsLaneAndItsRolesBelow) {
  GpuFindings findings;
  const Timeline timeline = to_timeline(
      two_pes({kernel(
          0, "gemm 256x256x64",
          {{record(RecordKind::kBlock, 2'000, 1'000, 17, 3), record(RecordKind::kCompute, 2'100, 500, 0, 0),
            record(RecordKind::kStore, 2'600, 100, 256, 4096, 2), record(RecordKind::kCompute, 2'600, 300, 0, 0)}})}),
      findings);
  ASSERT_EQ(timeline.lanes.size(), 2U);
  EXPECT_EQ(timeline.lanes[0].name, "sm 17");
  EXPECT_EQ(timeline.lanes[1].name, "sm 17 / role 2");
  std::vector<Time> begins;
  for (const Span& span : timeline.spans) {
    if (span.kind == SpanKind::kStore) {
      EXPECT_EQ(span.lane, 1U);
    }
    if (span.kind != SpanKind::kCompute) continue;
    EXPECT_EQ(span.lane, 0U);
    EXPECT_EQ(timeline.label(span.label), "tile");
    EXPECT_EQ(span.bytes, 0);
    begins.push_back(span.begin);
  }
  EXPECT_EQ(begins, (std::vector<Time>{1'100 * kNanosecond, 1'600 * kNanosecond}));
}

TEST(GpuTimeline, ArrowFromTheSignalToTheWait) {
  GpuFindings findings;
  const Timeline timeline = to_timeline(two_pes(signal_and_wait()), findings);
  ASSERT_EQ(timeline.arrows.size(), 1U);
  EXPECT_EQ(timeline.arrows[0].from_lane, 0U);
  EXPECT_EQ(timeline.arrows[0].to_lane, 1U);
  EXPECT_EQ(timeline.arrows[0].from, 1'500 * kNanosecond);
  EXPECT_EQ(timeline.arrows[0].to, 2'600 * kNanosecond);
  ASSERT_EQ(findings.releases.size(), 1U);
  EXPECT_EQ(findings.releases[0].after, 1'100 * kNanosecond);
  EXPECT_EQ(findings.unmatched, 0);
}

TEST(GpuTimeline, NoArrowFromWhatHadArrivedLongBefore) {
  auto work = signal_and_wait();
  work[1].blocks[0] = {record(RecordKind::kBlock, 3'900 + kAhead, 100, 4, 1),
                       wait_for(3'900 + kAhead, 40, kStride + 8, 3)};
  GpuFindings findings;
  EXPECT_TRUE(to_timeline(two_pes(work), findings).arrows.empty());
  EXPECT_EQ(findings.releases.size(), 1U);
}

TEST(GpuTimeline, CountsWaitsWithoutASignalAndLostRecords) {
  auto work = signal_and_wait();
  work[0].blocks[0].pop_back();
  GpuFindings findings;
  EXPECT_TRUE(to_timeline(two_pes(work), findings).arrows.empty());
  EXPECT_EQ(findings.unmatched, 1);
  EXPECT_EQ(findings.lost_records, 1);
}

TEST(GpuTimeline, PacketsAreTheirOwnSignal) {
  constexpr std::uint64_t kFlag = 9;
  const std::uint64_t payload = kFlag << 32 | 1024;
  auto put = record(RecordKind::kPacketPut, 2'000, 200, kStride + 512, payload);
  auto get = record(RecordKind::kPacketGet, 2'000 + kAhead, 1'200, kStride + 512, payload);
  put.detail = get.detail = sizeof(LLPacket);
  GpuFindings findings;
  const Timeline timeline =
      to_timeline(two_pes({kernel(0, "put", {{record(RecordKind::kBlock, 2'000, 300, 0, 1), put}}),
                           kernel(1, "get", {{record(RecordKind::kBlock, 2'000 + kAhead, 1'200, 0, 1), get}})}),
                  findings);
  ASSERT_EQ(timeline.arrows.size(), 1U);
  EXPECT_EQ(timeline.arrows[0].from, 1'200 * kNanosecond);
}

constexpr std::uint64_t life_payload(std::uint64_t slots, std::uint64_t operations) { return slots << 32 | operations; }

TEST(GpuRecords, SlotsThatWereLeftOutAreNoOperations) {
  const std::vector<Record> part{record(RecordKind::kBlock, 2'000, 900, 3, life_payload(4, 3)),
                                 record(RecordKind::kLoad, 2'000, 0, 256, 64),
                                 Record{},                                       // of a role with fewer operations
                                 record(RecordKind::kStore, 2'100, 0, 256, 64),  // room for this one and the next
                                 record(RecordKind::kLoad, 1'999, 0, 256, 64),   // an earlier replay's
                                 record(RecordKind::kLoad, 2'200, 0, 256, 64)};  // behind the slots that were used
  const std::vector<Record> kept = records_of_block(part);
  ASSERT_EQ(kept.size(), 3U);
  EXPECT_EQ(kept[0].payload, 3U);
  EXPECT_EQ(kept[1].begin, 2'000U);
  EXPECT_EQ(kept[2].begin, 2'100U);
}

TEST(GpuRecords, NoMoreThanThereIsRoomForAndNothingOfABlockThatDidNotRun) {
  std::vector<Record> part{record(RecordKind::kBlock, 2'000, 900, 3, life_payload(9, 8)),
                           record(RecordKind::kLoad, 2'000, 0, 256, 64)};
  EXPECT_EQ(records_of_block(part).size(), 2U);
  part[0] = Record{};
  EXPECT_TRUE(records_of_block(part).empty());
}

TEST(GpuRecords, LoadsAndStoresGoOnUntilTheNextOperationOrTheirRolesEnd) {
  const std::vector<Record> block{
      record(RecordKind::kBlock, 2'000, 1'000, 3, 4),   record(RecordKind::kLoad, 2'000, 0, 256, 64),
      record(RecordKind::kStore, 2'200, 0, 256, 64),    record(RecordKind::kEnd, 2'250, 0, 0, 0),
      record(RecordKind::kStore, 2'300, 0, 256, 64, 1), record(RecordKind::kEnd, 2'340, 0, 0, 0, 1),
      record(RecordKind::kPut, 2'900, 50, 256, 64)};
  std::vector<std::uint32_t> durations;
  for (const Record& operation : operations_of(block)) durations.push_back(operation.duration);
  EXPECT_EQ(durations, (std::vector<std::uint32_t>{200, 50, 40, 50}));
}

TEST(GpuTimeline, EndsOfRolesAreNoOperations) {
  GpuFindings findings;
  const Timeline timeline = to_timeline(
      two_pes({kernel(0, "roles",
                      {{record(RecordKind::kBlock, 2'000, 900, 3, 1), record(RecordKind::kStore, 2'100, 0, 256, 64, 1),
                        record(RecordKind::kEnd, 2'200, 0, 0, 0, 1)}})}),
      findings);
  EXPECT_EQ(timeline.spans.size(), 2U);
  EXPECT_EQ(findings.records, 1);
  EXPECT_EQ(findings.lost_records, 0);
}

TEST(GpuTimeline, RowsForWhatOverlapsAndForRoles) {
  GpuFindings findings;
  const Timeline timeline = to_timeline(
      two_pes({kernel(0, "long",
                      {{record(RecordKind::kBlock, 2'000, 900, 3, 2), record(RecordKind::kLoad, 2'000, 100, 256, 64, 1),
                        record(RecordKind::kLoad, 2'000, 300, 256, 64, 2)}}),
               kernel(0, "short", {{record(RecordKind::kBlock, 2'500, 100, 3, 0)}}),
               kernel(0, "next", {{record(RecordKind::kBlock, 2'900, 100, 3, 0)}, {}})}),
      findings);
  std::vector<std::string> names;
  for (const Lane& lane : timeline.lanes) names.push_back(lane.name);
  EXPECT_THAT(names, ::testing::ElementsAre("sm 3", "sm 3 / role 1", "sm 3 / role 2", "sm 3.1"));
  EXPECT_EQ(timeline.spans.size(), 5U);
}

TEST(GpuTimeline, LoadsGoOnUntilTheNextOperationOfTheirRole) {
  const auto block =
      kernel(0, "k",
             {{record(RecordKind::kBlock, 2'000, 900, 3, 5), record(RecordKind::kLoad, 2'000, 20, 256, 64),
               record(RecordKind::kLoad, 2'100, 20, 256, 64, 1), record(RecordKind::kStore, 2'300, 20, 256, 64),
               record(RecordKind::kStore, 2'500, 20, 256, 64, 1), record(RecordKind::kLoad, 2'600, 20, 256, 64)}});
  GpuFindings findings;
  const Timeline timeline = to_timeline(two_pes({block}), findings);
  std::vector<Time> loads;
  for (const Span& span : timeline.spans)
    if (span.kind == SpanKind::kLoad) loads.push_back((span.end - span.begin) / kNanosecond);
  EXPECT_THAT(loads, ::testing::ElementsAre(300, 400, 300));
}

TEST(GpuTimeline, WarpsThatTakeTurnsDoNotOverlap) {
  // The second store was recorded by a warp that was ahead, and is counted before the first.
  const auto block =
      kernel(0, "k",
             {{record(RecordKind::kBlock, 2'000, 900, 3, 3), record(RecordKind::kStore, 2'140, 60, 512, 64),
               record(RecordKind::kStore, 2'100, 60, 256, 64), record(RecordKind::kWait, 2'300, 100, 8, 1)}});
  GpuFindings findings;
  const Timeline timeline = to_timeline(two_pes({block}), findings);
  using Times = std::pair<Time, Time>;
  std::vector<Times> stores;
  for (const Span& span : timeline.spans)
    if (span.kind == SpanKind::kStore) stores.emplace_back(span.begin / kNanosecond, span.end / kNanosecond);
  EXPECT_THAT(stores, ::testing::ElementsAre(Times(1'100, 1'140), Times(1'140, 1'200)));
}

TEST(GpuTimeline, CopiesShareTheTimeBetweenWhatWasBeforeAndWhatCameAfter) {
  const auto begin = kernel(0, "begin", {{record(RecordKind::kBlock, 2'000, 100, 0, 0)}});
  auto signal = kernel(0, "signal", {{record(RecordKind::kBlock, 8'100, 50, 1, 0)}});
  signal.after = {2};
  auto stamp = kernel(0, "", {{record(RecordKind::kBlock, 9'500, 0, 0, 0)}});
  stamp.hidden = true;
  stamp.after = {3};
  auto end = kernel(0, "end", {{record(RecordKind::kBlock, 9'700, 20, 2, 0)}});
  end.after = {4};
  const GpuProfile profile = two_pes({begin, copy(0, 1'000'000, {0}), copy(0, 3'000'000, {1}), signal, stamp, end});
  const auto times = work_times(profile);
  EXPECT_EQ(times[1].begin, 1'100 * kNanosecond);
  EXPECT_EQ(times[1].end, 3'100 * kNanosecond);  // 2 of 6 MB, with what a start takes
  EXPECT_EQ(times[2].begin, 3'100 * kNanosecond);
  EXPECT_EQ(times[2].end, 7'100 * kNanosecond);

  GpuFindings findings;
  const Timeline timeline = to_timeline(profile, findings);
  std::vector<Size> copied;
  for (const Span& span : timeline.spans) {
    if (span.kind != SpanKind::kCopy) continue;
    copied.push_back(span.bytes);
    EXPECT_EQ(timeline.lanes[span.lane].name, "copy engine 0");
  }
  EXPECT_THAT(copied, ::testing::ElementsAre(1'000'000, 3'000'000));
  EXPECT_EQ(findings.unplaced, 0);
  // begin -> copy -> copy -> signal -> end, through the stamp that is not drawn.
  ASSERT_EQ(timeline.arrows.size(), 4U);
  const auto last = *std::max_element(timeline.arrows.begin(), timeline.arrows.end(),
                                      [](const Arrow& a, const Arrow& b) { return a.to < b.to; });
  EXPECT_EQ(last.from, 7'150 * kNanosecond);
  EXPECT_EQ(last.to, 8'700 * kNanosecond);
}

TEST(GpuTimeline, ACopiedSignalIsThereWhenItsWaitEnds) {
  const auto begin = kernel(0, "begin", {{record(RecordKind::kBlock, 2'000, 100, 0, 0)}});
  auto signal = copy(0, 8, {1});
  signal.signal = kStride + 8;
  auto own = copy(0, 1'000'000, {2});
  auto end = kernel(0, "end", {{record(RecordKind::kBlock, 12'100, 20, 2, 0)}});
  end.after = {3};
  const auto waits = kernel(
      1, "waits",
      {{record(RecordKind::kBlock, 1'000 + kAhead, 4'100, 2, 1), wait_for(1'000 + kAhead, 4'100, kStride + 8, 3)}});
  const GpuProfile profile = two_pes({begin, copy(0, 1'000'000, {0}), signal, own, end, waits});
  const auto times = work_times(profile);
  EXPECT_EQ(times[2].end, 4'100 * kNanosecond);
  EXPECT_LE(times[1].end, times[2].end);
  EXPECT_EQ(times[3].begin, times[2].end);
  EXPECT_EQ(times[3].end, 11'100 * kNanosecond);

  GpuFindings findings;
  const Timeline timeline = to_timeline(profile, findings);
  EXPECT_EQ(findings.unmatched, 0);
  // It says nothing about the clocks: that it was there 0 us before the wait's end is how it was placed.
  EXPECT_TRUE(findings.releases.empty());
  EXPECT_TRUE(std::any_of(timeline.arrows.begin(), timeline.arrows.end(), [&](const Arrow& arrow) {
    return timeline.lanes[arrow.from_lane].kind == LaneKind::kCopyEngine && timeline.lanes[arrow.to_lane].pe == 1;
  }));
}

TEST(GpuTimeline, WorkWithoutARecordBeforeOrBehindItIsCounted) {
  GpuFindings findings;
  const Timeline timeline = to_timeline(
      two_pes({copy(0, 100, {}), kernel(0, "k", {{record(RecordKind::kBlock, 2'000, 100, 0, 0)}}), copy(0, 100, {1})}),
      findings);
  EXPECT_EQ(findings.unplaced, 2);
  EXPECT_EQ(timeline.spans.size(), 1U);
}

TEST(GpuTimeline, NothingRecorded) {
  GpuFindings findings;
  const Timeline timeline = to_timeline(two_pes({}), findings);
  EXPECT_TRUE(timeline.spans.empty());
  EXPECT_EQ(timeline.duration(), 0);
}

TEST(BufferName, OfDescriptions) {
  EXPECT_EQ(buffer_name("all_reduce ring arrived[3] on PE 2"), "all_reduce ring arrived");
  EXPECT_EQ(buffer_name("my[odd] name[12] on PE 0"), "my[odd] name");
  EXPECT_EQ(buffer_name("unallocated memory at offset 7 on PE 1"), "");
  EXPECT_EQ(buffer_name(""), "");
}

}  // namespace
}  // namespace tandem::trace
