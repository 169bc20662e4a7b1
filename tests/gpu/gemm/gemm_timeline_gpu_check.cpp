// Records overlapped operators on this machine's GPUs, tile by tile. It checks that all tiles are there and that their
// gates and signals match. It draws pictures beside the simulator's prediction, and prints the cost of recording. The
// exit code is 1 if a check failed.
//
//   gemm_timeline_gpu_check [OUT]      a folder for reports, pictures and traces (.)

#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <limits>
#include <mutex>

#include "gpu/normal_data.h"
#include "gpu/timeline_check.h"
#include "tandem/operators.h"
#include "tandem/timeline.h"

namespace tandem::test {

namespace {

constexpr int kCalls = 4;
constexpr int kRounds = 5;
/// Left free for the kernels that time copies.
constexpr int kStampSms = 2;

struct TimelineCase {
  Operator op;
  Size m, n, k;

  std::string describe(int pes) const { return fmt::format("{} {}x{}x{}, {} PEs", name(op), m, n, k, pes); }
  OperatorOptions options() const {
    OperatorOptions o;
    o.m = m;
    o.n = n;
    o.k = k;
    o.form = Form::kOverlapped;
    o.copy_by = CopyBy::kCopyEngine;
    if (!gathers()) o.reduction = Reduction::kChain;
    o.splits = gathers() ? 1 : 2;
    o.communication_sms = kStampSms;
    return o;
  }
  bool gathers() const { return op == Operator::kAllGatherGemm; }
  Size local_n(int pes) const { return gathers() ? n / pes : n; }
  Size local_k(int pes) const { return gathers() ? k : k / pes; }
  /// Tiles that each PE computes in a call: rows are cut where shards and their parts end.
  Size tiles(int pes) const {
    const OperatorOptions o = options();
    const RowPartition rows{m, pes, o.splits, 2 * o.tile_m};
    Size panels = 0;
    for (int owner = 0; owner < pes; ++owner)
      for (int part = 0; part < o.splits; ++part) panels += ceil_div(rows.part(owner, part).size(), o.tile_m);
    return panels * ceil_div(local_n(pes), o.tile_n);
  }
};

constexpr TimelineCase kCases[] = {{Operator::kAllGatherGemm, 8192, 28672, 4096},
                                   {Operator::kGemmReduceScatter, 8192, 4096, 14336}};

struct Buffers {
  bf16 *a, *b, *c;
};

Buffers buffers_of(World& world, const TimelineCase& c) {
  const int pes = world.num_pes();
  const Size rows = c.gathers() ? c.m / pes : c.m;
  return {world.heap().allocate_local<bf16>(rows * c.local_k(pes), "a"),
          world.heap().allocate_local<bf16>(c.local_n(pes) * c.local_k(pes), "b"),
          world.heap().allocate_local<bf16>(c.m * c.local_n(pes), "c")};
}

/// One PE's part of a case.
void run(CudaThreads& threads, World& world, const TimelineCase& c, Measured& measured, std::mutex& mutex) {
  Stream stream = world.make_stream("main");
  const Buffers buffers = buffers_of(world, c);
  const int pes = world.num_pes();
  const bench::NormalData data(1);
  data.fill(world, buffers.a, 0, (c.gathers() ? c.m / pes : c.m) * c.local_k(pes));
  data.fill(world, buffers.b, 0, c.local_n(pes) * c.local_k(pes));
  const auto plan = make_operator(world, c.op, c.options());
  ProfiledRounds(threads, world, stream, kCalls, kRounds)
      .run([&] { plan->run(stream, buffers.a, buffers.b, buffers.c); }, measured, mutex);
}

/// Tiles of each PE, in order of begin.
std::vector<std::vector<trace::Span>> tiles_by_pe(const trace::Timeline& timeline, int pes) {
  std::vector<std::vector<trace::Span>> tiles(static_cast<std::size_t>(pes));
  for (const trace::Span& span : timeline.spans)
    if (span.kind == trace::SpanKind::kCompute)
      tiles[static_cast<std::size_t>(timeline.lanes[span.lane].pe)].push_back(span);
  for (auto& list : tiles)
    std::stable_sort(list.begin(), list.end(), [](const auto& a, const auto& b) { return a.begin < b.begin; });
  return tiles;
}

/// The call with the least time from the first tile on any PE to the last one: that in which no PE was late. Tiles of
/// other calls beside it are left out.
trace::Timeline best_call(const TimelineCase& c, int pes, trace::Timeline part) {
  constexpr trace::Time never = std::numeric_limits<trace::Time>::max();
  const auto tiles = tiles_by_pe(part, pes);
  const auto of_call = static_cast<std::size_t>(c.tiles(pes));
  struct Call {
    trace::Time begin = never, end = 0;
    std::vector<trace::Time> first, next;  // by PE: the first tile, and that of the next call
  };
  Call best{0, never, {}, {}};
  for (std::size_t number = 0; number < kCalls; ++number) {
    Call call;
    for (const auto& of_pe : tiles) {
      if (of_pe.size() < kCalls * of_call) return part;  // said elsewhere
      call.first.push_back(of_pe[number * of_call].begin);
      call.next.push_back(number + 1 < kCalls ? of_pe[(number + 1) * of_call].begin : never);
      call.begin = std::min(call.begin, call.first.back());
      for (std::size_t i = number * of_call; i < (number + 1) * of_call; ++i)
        call.end = std::max(call.end, of_pe[i].end);
    }
    if (call.end - call.begin < best.end - best.begin) best = call;
  }
  std::erase_if(part.spans, [&](const trace::Span& span) {
    const auto pe = static_cast<std::size_t>(part.lanes[span.lane].pe);
    return span.kind == trace::SpanKind::kCompute && (span.begin < best.first[pe] || span.begin >= best.next[pe]);
  });
  return trace::without_empty_lanes(trace::cut(part, best.begin, best.end));
}

std::string model(int pes) { return fmt::format("h200x{}-calibrated", pes); }

trace::Timeline predicted(const TimelineCase& c, int pes) {
  return predicted_call(model(pes), pes, [&](World& world, Stream& stream) {
    const Buffers buffers = buffers_of(world, c);
    const std::shared_ptr<OperatorPlan> plan = make_operator(world, c.op, c.options());
    return [&stream, buffers, plan] { plan->run(stream, buffers.a, buffers.b, buffers.c); };
  });
}

/// Without the lanes of roles, so that a picture's share of busy SMs is that of their tiles.
trace::Timeline blocks_alone(trace::Timeline timeline) {
  const auto is_role = [&](std::uint32_t lane) {
    return timeline.lanes[lane].name.find("/ role") != std::string::npos;
  };
  std::erase_if(timeline.spans, [&](const trace::Span& span) { return is_role(span.lane); });
  std::erase_if(timeline.arrows,
                [&](const trace::Arrow& arrow) { return is_role(arrow.from_lane) || is_role(arrow.to_lane); });
  return trace::without_empty_lanes(timeline);
}

void write_pictures(const TimelineCase& c, int pes, const Measured& m, const trace::Timeline& part,
                    const std::string& folder) {
  trace::Report report;
  report.title = fmt::format("{} {}x{}x{} bf16", name(c.op), c.m, c.n, c.k);
  report.summary = {{"measured", fmt::format("{:.1f} us a call in a graph of {}", m.off_us, kCalls)},
                    {"recorded", fmt::format("{:.1f} us", m.on_us)}};
  report.timelines = {best_call(c, pes, part), predicted(c, pes)};
  report.timelines[0].title = fmt::format("measured on {} x {}", pes, m.machine);
  report.timelines[1].title = "predicted for " + model(pes);
  const std::string path = fmt::format("{}/{}_x{}", folder, name(c.op), pes);
  trace::write_report(report, path + ".html");
  trace::write_chrome_trace(report.timelines[0], path + ".json");
  report.timelines[0] = blocks_alone(report.timelines[0]);
  trace::write_svg(report, path + ".svg");
}

/// Each case in a world of its own.
void run(int pes, const TimelineCase& c, const std::string& folder) {
  Measured measured;
  std::mutex mutex;
  CudaOptions options;
  options.heap_bytes = Size{2} << 30;
  options.timeout_s = options.arrival_timeout_s = 5;
  options.record.on = true;
  options.record.time_copies = true;
  CudaThreads threads(pes, options);
  threads.run([&](World& world) { run(threads, world, c, measured, mutex); });

  const ProfileInfo& info = threads.profile_info();
  const trace::Timeline& timeline = threads.timeline();
  const trace::Timeline part = trace::cut(timeline, picoseconds(measured.begin_us), picoseconds(measured.end_us));
  const double overhead = measured.on_us / measured.off_us - 1;
  std::printf(
      "%-44s %9.1f us, recorded %9.1f us: %+.2f %%; %lld operations, %lld lost, %lld pieces of other "
      "work without a place, %lld waits unmatched\n",
      c.describe(pes).c_str(), measured.off_us, measured.on_us, 100 * overhead, static_cast<long long>(info.operations),
      static_cast<long long>(info.lost_operations), static_cast<long long>(info.lost_work),
      static_cast<long long>(info.unmatched_waits));
  // The operators' small kernels have no recorded form: what is last in a graph has no place, the tiles have to be
  // there.
  expect(info.lost_operations == 0, c.describe(pes) + ": operations were not recorded");
  expect(info.unmatched_waits == 0, c.describe(pes) + ": waits without a signal");
  for (const auto& tiles : tiles_by_pe(part, pes))
    expect(static_cast<Size>(tiles.size()) == kCalls * c.tiles(pes),
           fmt::format("{}: {} tiles recorded, {} x {} computed", c.describe(pes), tiles.size(), kCalls, c.tiles(pes)));
  write_pictures(c, pes, measured, part, folder);
}

}  // namespace

void run_all(int pes, const std::string& folder) {
  for (const TimelineCase& c : kCases) run(pes, c, folder);
}

}  // namespace tandem::test

int main(int argc, char** argv) { return tandem::test::check_timelines(argc, argv, tandem::test::run_all); }
