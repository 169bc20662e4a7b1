// Tutorial 08: a slow overlap and its cause, seen in a timeline. docs/tutorials/08_timeline.md explains it.
//
//   08_timeline [REPORT.html]     also writes both timelines as a page

#include <cmath>
#include <cstdio>
#include <exception>
#include <string>
#include <vector>

#include "tandem/simulation.h"
#include "tandem/timeline.h"

using namespace tandem;

// listing: kernel
/// Adds each chunk of a vector to this PE's sum as soon as the previous PE has sent it.
struct AddChunks {
  struct Args {
    Symm<float> received;
    float* sum;
    Signals arrived;  // [chunk]
    Size count;
    int chunks;
  };

  template <class Block>
  TANDEM_DEVICE static void run(Block& block, const Args& a) {
    const Split chunks = split(a.count, a.chunks, 4);
    for (int i = 0; i < a.chunks; ++i) {
      block.wait(a.arrived + i, 1, 1);
      for (const Range tile : block.template tiles<float>(split(chunks[i], block.count(), 4)[block.index()])) {
        const auto sum = block.template load<float>(a.sum, tile);
        block.store(a.sum, tile, sum + block.template load<float>(a.received.local(), tile));
      }
    }
  }
};
// end of listing

// listing: host
void send_and_add(World& world, int chunks) {
  constexpr Size kCount = Size{4} << 20;
  SymmetricHeap& heap = world.heap();
  const Symm<float> from = heap.allocate<float>(kCount, "from");
  const AddChunks::Args args{heap.allocate<float>(kCount, "received"), heap.allocate_local<float>(kCount, "sum"),
                             heap.signals(chunks, "arrived"), kCount, chunks};
  const std::vector<float> ones(kCount, 1.0F);
  world.copy_in(from.local(), ones.data(), kCount * sizeof(float));
  world.copy_in(args.sum, ones.data(), kCount * sizeof(float));

  const int next = (world.pe() + 1) % world.num_pes();
  Stream copies = world.make_stream("copies"), main = world.make_stream("main");
  for (int i = 0; i < chunks; ++i) {
    const Range chunk = split(kCount, chunks, 4)[i];
    copies.copy_async((args.received + chunk.begin).on(next), (from + chunk.begin).local(), chunk.size() * 4);
    copies.write_signal((args.arrived + i).on(next), 1);
  }
  main.launch<AddChunks>({.blocks = 24}, args);
  main.synchronize();
  copies.synchronize();
}
// end of listing

// listing: record
trace::Timeline record(int chunks) {
  Simulation simulation(load_machine("h200x4"), 4, {.record = true});
  simulation.run([&](World& world) { send_and_add(world, chunks); });
  trace::Timeline timeline = simulation.timeline();
  timeline.title = std::to_string(chunks) + (chunks == 1 ? " chunk" : " chunks");
  return timeline;
}
// end of listing

// listing: waits
/// The part of the blocks' life that they spend in waits, in percent.
double waiting(const trace::Timeline& timeline) {
  trace::Time life = 0, waits = 0;
  for (const trace::Span& span : timeline.spans) {
    if (timeline.lanes[span.lane].kind != trace::LaneKind::kSm) continue;
    if (span.kind == trace::SpanKind::kKernel) life += span.end - span.begin;
    if (span.kind == trace::SpanKind::kWait) waits += span.end - span.begin;
  }
  return 100.0 * static_cast<double>(waits) / static_cast<double>(life);
}
// end of listing

int main(int argc, char** argv) try {
  trace::Report report{.title = "Send and add"};
  for (const int chunks : {1, 4, 16}) {
    const trace::Timeline& timeline = report.timelines.emplace_back(record(chunks));
    std::printf("%-9s %lld us predicted, %lld %% of the blocks' time in waits\n", timeline.title.c_str(),
                std::llround(static_cast<double>(timeline.duration()) / trace::kMicrosecond),
                std::llround(waiting(timeline)));
  }
  if (argc > 1) trace::write_report(report, argv[1]);
} catch (const std::exception& error) {
  std::fprintf(stderr, "%s\n", error.what());
  return 1;
}
