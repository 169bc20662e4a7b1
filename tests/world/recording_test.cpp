// Timelines of worlds on CPUs: which work they show, in what order, and what it lies within. No times.
#include <gmock/gmock.h>

#include <algorithm>
#include <string>
#include <vector>

#include "tandem/advanced/gemm.h"
#include "tandem/error.h"
#include "tandem/timeline.h"
#include "tandem/worlds.h"
#include "world/cases.h"

namespace tandem::test {
namespace {

using trace::LaneKind;
using trace::Span;
using trace::SpanKind;
using trace::Timeline;

constexpr int kElements = 256;

/// A block puts its elements to the next PE and sums up, in two roles, what the previous one has put.
struct PassOn {
  struct Args {
    Symm<const float> in;
    Symm<float> out;
    Signals arrived;
  };
  template <class Block>
  static void run(Block& block, const Args& a) {
    const int next = (block.pe() + 1) % block.num_pes();
    const Size own = Size{block.index()} * kElements;
    block.put_signal(a.out + own, a.in.local() + own, kElements, a.arrived + block.index(), 1, next);
    block.template parallel<1, 1>(
        [&](auto& role) {
          role.wait(a.arrived + block.index(), 1, 1);
          role.store(a.out.local() + own, {0, 8}, role.template load<float>(a.in.local() + own, {0, 8}));
        },
        [&](auto& role) { role.fence(); });
  }
};

WorldOptions recorded_options() {
  WorldOptions options = host_options();
  options.record.on = true;
  return options;
}

/// Runs a kernel of two blocks, a copy, a signal to the other PE and a wait for its signal on each of two PEs.
void run_all_kinds(World& world) {
  const auto in = world.heap().allocate<float>(2 * kElements, "in");
  const auto out = world.heap().allocate<float>(2 * kElements, "out");
  const Signals arrived = world.heap().signals(2, "arrived");
  const Signals done = world.heap().signals(1, "done");
  Stream stream = world.make_stream("main");
  stream.launch<PassOn>({2, 64}, {in, out, arrived});
  stream.copy_async(out.local(), in.local(), 1024);
  stream.write_signal(done.on(1 - world.pe()), 1);
  stream.wait_signal(done.local(), 1);
  stream.synchronize();
}

std::vector<Span> spans_of(const Timeline& timeline, int pe, SpanKind kind, const std::string& label) {
  std::vector<Span> found;
  for (const Span& span : timeline.spans)
    if (timeline.lanes[span.lane].pe == pe && span.kind == kind && timeline.label(span.label) == label)
      found.push_back(span);
  std::sort(found.begin(), found.end(), [](const Span& a, const Span& b) { return a.begin < b.begin; });
  return found;
}

/// The lane of a role has its block's name before a slash.
std::string block_of(const std::string& lane) { return lane.substr(0, lane.find(" /")); }

bool lies_within_a_life(const Timeline& timeline, const Span& span) {
  const trace::Lane& lane = timeline.lanes[span.lane];
  return std::any_of(timeline.spans.begin(), timeline.spans.end(), [&](const Span& life) {
    const trace::Lane& its = timeline.lanes[life.lane];
    return life.kind == SpanKind::kKernel && its.pe == lane.pe && its.name == block_of(lane.name) &&
           life.begin <= span.begin && span.end <= life.end;
  });
}

TEST(HostTimelines, ShowAllWorkInOrder) {
  WorldThreads threads(2, recorded_options());
  threads.run(run_all_kinds);
  const Timeline& timeline = threads.timeline();
  EXPECT_EQ(timeline.machine, "host");
  EXPECT_FALSE(timeline.predicted);
  for (const int pe : {0, 1}) {
    const auto of = [&](SpanKind kind, const std::string& label) { return spans_of(timeline, pe, kind, label); };
    const auto kernels = of(SpanKind::kKernel, "PassOn");
    const auto copies = of(SpanKind::kCopy, "copy");
    const auto signals = of(SpanKind::kSignal, "signal done");
    const auto waits = of(SpanKind::kKernel, "wait_signal");
    ASSERT_EQ(kernels.size(), 2U);
    ASSERT_EQ(copies.size(), 1U);
    ASSERT_EQ(signals.size(), 1U);
    ASSERT_EQ(waits.size(), 1U);
    EXPECT_EQ(copies[0].bytes, 1024);
    EXPECT_EQ(timeline.lanes[copies[0].lane].kind, LaneKind::kCopyEngine);
    for (const Span& kernel : kernels) EXPECT_LE(kernel.end, copies[0].begin);
    EXPECT_LE(copies[0].end, signals[0].begin);
    EXPECT_LE(signals[0].end, waits[0].begin);

    const auto puts = of(SpanKind::kPut, "put out");
    ASSERT_EQ(puts.size(), 2U);
    EXPECT_EQ(puts[0].bytes, kElements * 4);
    EXPECT_EQ(of(SpanKind::kSignal, "signal arrived").size(), 2U);
    EXPECT_EQ(of(SpanKind::kStore, "store out").size(), 2U);
    for (const Span& wait : of(SpanKind::kWait, "wait arrived"))
      EXPECT_THAT(timeline.lanes[wait.lane].name, ::testing::HasSubstr(" / role 1"));
  }
  for (const Span& span : timeline.spans) {
    const bool is_operation = span.kind != SpanKind::kKernel && span.kind != SpanKind::kCopy;
    EXPECT_TRUE(!is_operation || lies_within_a_life(timeline, span)) << timeline.label(span.label);
  }
  for (const trace::Arrow& arrow : timeline.arrows) EXPECT_LE(arrow.from, arrow.to);
  EXPECT_EQ(threads.profile_info().lost_operations, 0);
  EXPECT_EQ(threads.profile_info().lost_work, 0);
  EXPECT_EQ(threads.profile_info().clocks.size(), 2U);
}

/// Each wait joins the work that both streams follow. With repeats the lists would double in each round.
TEST(HostTimelines, StreamsThatWaitForEachOtherNeedNoMoreMemory) {
  constexpr int kRounds = 10;
  WorldThreads threads(1, recorded_options());
  threads.run([](World& world) {
    auto* const from = world.heap().allocate_local<float>(kElements, "from");
    auto* const to = world.heap().allocate_local<float>(kElements, "to");
    Stream one = world.make_stream("one");
    Stream two = world.make_stream("two");
    one.copy_async(to, from, 512);
    two.copy_async(to + kElements / 2, from, 512);
    for (int i = 0; i < kRounds; ++i) {
      one.wait_for(two);
      two.wait_for(one);
    }
    two.copy_async(to, from, 512);
    two.synchronize();
  });
  EXPECT_EQ(threads.timeline().arrows.size(), 2U);  // from both earlier copies to the last one
}

TEST(HostTimelines, ShowTheTilesOfAGemm) {
  WorldThreads threads(1, recorded_options());
  threads.run([](World& world) {
    auto* const a = world.heap().allocate_local<float>(64 * 64, "a");
    auto* const c = world.heap().allocate_local<float>(64 * 64, "c");
    Gemm gemm;
    gemm.m = gemm.n = gemm.k = 64;
    gemm.type = gemm.out_type = DType::kF32;
    gemm.a = gemm.b = a;
    gemm.destination = GemmLocal{c};
    gemm.tile_m = gemm.tile_n = 32;
    Stream stream = world.make_stream("main");
    stream.gemm(gemm, world.team());
    stream.synchronize();
  });
  const auto tiles = spans_of(threads.timeline(), 0, SpanKind::kCompute, "tile");
  EXPECT_EQ(tiles.size(), 4U);
  for (const Span& tile : tiles) EXPECT_TRUE(lies_within_a_life(threads.timeline(), tile));
  EXPECT_FALSE(spans_of(threads.timeline(), 0, SpanKind::kKernel, "gemm 64x64x64").empty());
}

TEST(HostTimelines, LeaveOutWhatIsTurnedOffAndCountWhatIsLost) {
  WorldThreads off(2, recorded_options());
  off.run([&](World& world) {
    off.record(world.pe(), false);
    run_all_kinds(world);
  });
  EXPECT_TRUE(off.timeline().spans.empty());

  WorldOptions short_ones = recorded_options();
  short_ones.record.operations = 1;
  WorldThreads few(2, short_ones);
  few.run(run_all_kinds);
  // Each block has a put, a signal, a wait, a load, a store and a fence.
  EXPECT_EQ(few.profile_info().lost_operations, 2 * 2 * 5);
  EXPECT_EQ(spans_of(few.timeline(), 0, SpanKind::kPut, "put out").size(), 2U);

  WorldOptions no_room = recorded_options();
  no_room.record.bytes = 64;
  WorldThreads none(2, no_room);
  none.run(run_all_kinds);
  EXPECT_EQ(none.profile_info().lost_work, 2 * 4);
  EXPECT_TRUE(none.timeline().spans.empty());

  WorldOptions no_operations = recorded_options();
  no_operations.record.operations = 0;
  EXPECT_THROW(WorldThreads(1, no_operations), InvalidArgument);
}

}  // namespace
}  // namespace tandem::test
