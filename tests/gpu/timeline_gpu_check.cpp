// Records collectives on this machine's GPUs. It checks that timelines are complete and that clocks agree. It draws
// pictures beside the simulator's prediction, and prints the cost of recording. The exit code is 1 if a check failed.
//
//   timeline_gpu_check [OUT]      a folder for reports, pictures and traces (.)

#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <map>
#include <mutex>

#include "gpu/timeline_check.h"
#include "tandem/collectives.h"
#include "tandem/timeline.h"

namespace tandem::test {

namespace {

constexpr int kCalls = 20;
constexpr int kRounds = 15;
constexpr Size kMiB = Size{1} << 20;

struct TimelineCase {
  Collective collective;
  const char* algorithm;
  int blocks;  // 0: a copy engine's
  Size bytes;  // of the larger buffer
  bool picture = false;

  std::string describe(int pes) const {
    return fmt::format("{} {}, {} KiB, {} PEs", name(collective), algorithm, bytes >> 10, pes);
  }
  Size count(int pes) const { return bytes / 2 / (collective == Collective::kAllGather ? pes : 1); }
  CollectiveOptions options(int pes) const {
    CollectiveOptions o;
    o.type = DType::kBF16;
    o.algorithm = algorithm;
    o.blocks = blocks;
    o.max_count = count(pes);
    return o;
  }
};

const std::vector<TimelineCase>& cases() {
  using enum Collective;
  static const std::vector<TimelineCase> all{{kAllReduce, "one_shot_ll", 8, kMiB / 16},
                                             {kAllReduce, "one_shot_ll", 32, kMiB / 4, true},
                                             {kAllReduce, "two_shot", 32, kMiB},
                                             {kAllReduce, "two_shot", 64, 16 * kMiB, true},
                                             {kAllReduce, "two_shot", 128, 64 * kMiB},
                                             {kAllReduce, "ring", 16, 16 * kMiB, true},
                                             {kAllReduce, "tree", 16, 4 * kMiB, true},
                                             {kAllGather, "push", 32, 16 * kMiB},
                                             {kAllGather, "push", 32, 64 * kMiB, true},
                                             {kAllGather, "copy_engine_push", 0, 16 * kMiB, true},
                                             {kAllGather, "copy_engine_push", 0, 64 * kMiB}};
  return all;
}

/// One PE's part of all cases.
void run(CudaThreads& threads, World& world, std::vector<Measured>& measured, std::mutex& mutex) {
  Stream stream = world.make_stream("main");
  const auto in = world.heap().allocate<std::byte>(64 * kMiB, "in");
  const auto out = world.heap().allocate<std::byte>(64 * kMiB, "out");
  const std::vector<std::byte> zeros(static_cast<std::size_t>(64 * kMiB));
  world.copy_in(in.local(), zeros.data(), 64 * kMiB);
  ProfiledRounds rounds(threads, world, stream, kCalls, kRounds);
  for (std::size_t i = 0; i < cases().size(); ++i) {
    const TimelineCase& c = cases()[i];
    const auto plan = make_collective(world, c.collective, c.options(world.num_pes()));
    rounds.run([&] { plan->run(stream, in, out, c.count(world.num_pes())); }, measured[i], mutex);
  }
}

/// Blocks of kernels, by PE, in order of begin.
std::map<int, std::vector<trace::Span>> blocks_by_pe(const trace::Timeline& timeline) {
  std::map<int, std::vector<trace::Span>> blocks;
  for (const trace::Span& span : timeline.spans)
    if (span.kind == trace::SpanKind::kKernel && timeline.lanes[span.lane].kind == trace::LaneKind::kSm)
      blocks[timeline.lanes[span.lane].pe].push_back(span);
  for (auto& [pe, list] : blocks)
    std::stable_sort(list.begin(), list.end(), [](const auto& a, const auto& b) { return a.begin < b.begin; });
  return blocks;
}

/// Blocks (of kernels) of one call of a case.
std::size_t blocks_of_call(const TimelineCase& c) {
  constexpr std::size_t begin_and_end = 2;  // of a copy engine's; its signals are copies, too
  return c.blocks > 0 ? static_cast<std::size_t>(c.blocks) : begin_and_end;
}

void check_whole(const TimelineCase& c, int pes, const trace::Timeline& part) {
  const auto blocks = blocks_by_pe(part);
  expect(blocks.size() == static_cast<std::size_t>(pes), c.describe(pes) + ": PEs are missing");
  for (const auto& [pe, list] : blocks)
    expect(list.size() == kCalls * blocks_of_call(c),
           fmt::format("{}: {} blocks of PE {} recorded, {} x {} ran", c.describe(pes), list.size(), pe, kCalls,
                       blocks_of_call(c)));
  // Operations lie within the life of a block of their lane.
  std::map<std::uint32_t, std::vector<std::pair<trace::Time, trace::Time>>> lives;
  for (const auto& [pe, list] : blocks)
    for (const trace::Span& life : list) lives[life.lane].emplace_back(life.begin, life.end);
  Size outside = 0;
  for (const trace::Span& span : part.spans) {
    if (span.kind == trace::SpanKind::kKernel || !lives.contains(span.lane)) continue;
    const auto& own = lives[span.lane];
    outside += std::none_of(own.begin(), own.end(),
                            [&](const auto& life) { return life.first <= span.begin && span.end <= life.second; });
  }
  expect(outside == 0, fmt::format("{}: {} operations outside of their blocks", c.describe(pes), outside));
}

/// The last call alone.
trace::Timeline last_call(const TimelineCase& c, const trace::Timeline& part) {
  trace::Time begin = part.end;
  trace::Time end = part.begin;
  for (const auto& [pe, list] : blocks_by_pe(part)) {
    const std::size_t own = std::min(blocks_of_call(c), list.size());
    for (std::size_t i = list.size() - own; i < list.size(); ++i) {
      begin = std::min(begin, list[i].begin);
      end = std::max(end, list[i].end);
    }
  }
  return trace::without_empty_lanes(trace::cut(part, begin, end));
}

trace::Timeline predicted(const TimelineCase& c, int pes) {
  return predicted_call(pes == 2 ? "h200x2" : "h200x4", pes, [&](World& world, Stream& stream) {
    const auto in = world.heap().allocate<std::byte>(c.bytes, "in");
    const auto out = world.heap().allocate<std::byte>(c.bytes, "out");
    const std::shared_ptr<CollectivePlan> plan = make_collective(world, c.collective, c.options(pes));
    return [&stream, in, out, plan, count = c.count(pes)] { plan->run(stream, in, out, count); };
  });
}

void write_pictures(const TimelineCase& c, int pes, const Measured& m, const trace::Timeline& part,
                    const std::string& folder) {
  trace::Report report;
  report.title = c.describe(pes) + ", bf16";
  report.summary = {{"measured", fmt::format("{:.2f} us a call in a graph of {}", m.off_us, kCalls)},
                    {"recorded", fmt::format("{:.2f} us", m.on_us)}};
  report.timelines = {last_call(c, part), predicted(c, pes)};
  report.timelines[0].title = "measured";
  report.timelines[1].title = "predicted";
  const std::string path = fmt::format("{}/{}_{}_{}k_x{}", folder, name(c.collective), c.algorithm, c.bytes >> 10, pes);
  trace::write_report(report, path + ".html");
  trace::write_svg(report, path + ".svg");
  trace::write_chrome_trace(report.timelines[0], path + ".json");
}

void check_clocks(int pes, const ProfileInfo& info) {
  double error = 0;
  for (int pe = 1; pe < pes; ++pe) {
    const auto& clock = info.clocks[static_cast<std::size_t>(pe)];
    std::printf("clock of PE %d: %+lld ns against PE 0, error %.0f ns, at most %.0f ns, drift %+.2f ppm\n", pe,
                static_cast<long long>(clock.offset_ns), clock.error_ns, clock.bound_ns, clock.drift_ppm);
    error = std::max(error, clock.error_ns);
  }
  std::map<std::pair<int, int>, std::vector<double>> delays;
  Size early = 0;
  for (const auto& release : info.releases) {
    delays[{release.from, release.to}].push_back(release.us);
    early += release.us < -2 * error / 1000;
  }
  for (auto& [pair, us] : delays) {
    std::sort(us.begin(), us.end());
    std::printf("signals PE %d -> %d: %zu, us from the signal to the wait's end: least %.3f, 1%% %.3f, median %.3f\n",
                pair.first, pair.second, us.size(), us.front(), us[us.size() / 100], us[us.size() / 2]);
  }
  expect(early == 0, fmt::format("{} of {} waits ended before their signal was sent", early, info.releases.size()));
  expect(!info.releases.empty(), "no wait was matched with its signal");
}

void run(int pes, const std::string& folder) {
  std::printf("%d PEs\n", pes);
  std::vector<Measured> measured(cases().size());
  std::mutex mutex;
  CudaOptions options;
  options.heap_bytes = Size{1} << 30;
  options.timeout_s = options.arrival_timeout_s = 5;
  options.record.on = true;
  options.record.bytes = Size{2} << 30;
  CudaThreads threads(pes, options);
  threads.run([&](World& world) { run(threads, world, measured, mutex); });

  const ProfileInfo& info = threads.profile_info();
  const trace::Timeline& timeline = threads.timeline();
  std::printf("%lld operations, %lld lost, %lld launches or copies lost, %lld waits unmatched\n",
              static_cast<long long>(info.operations), static_cast<long long>(info.lost_operations),
              static_cast<long long>(info.lost_work), static_cast<long long>(info.unmatched_waits));
  // Nothing recorded follows the last copy of a graph, so that its end is not known.
  const auto last_copies =
      pes * std::count_if(cases().begin(), cases().end(), [](const TimelineCase& c) { return c.blocks == 0; });
  expect(info.lost_work <= last_copies, "launches or copies were not recorded");
  expect(info.unmatched_waits == 0, "waits without a signal");
  check_clocks(pes, info);
  for (std::size_t i = 0; i < cases().size(); ++i) {
    const TimelineCase& c = cases()[i];
    const Measured& m = measured[i];
    const double overhead = m.on_us / m.off_us - 1;
    std::printf("%-44s %9.2f us, recorded %9.2f us: %+.2f %%\n", c.describe(pes).c_str(), m.off_us, m.on_us,
                100 * overhead);
    const trace::Timeline part = trace::cut(timeline, picoseconds(m.begin_us), picoseconds(m.end_us));
    check_whole(c, pes, part);
    if (c.picture) write_pictures(c, pes, m, part, folder);
  }
}

}  // namespace

/// All cases in one world.
void run_all(int pes, const std::string& folder) { run(pes, folder); }

}  // namespace tandem::test

int main(int argc, char** argv) { return tandem::test::check_timelines(argc, argv, tandem::test::run_all); }
