// A project of somebody else: what it includes and links comes from the installed package.
#include <tandem/machine.h>
#include <tandem/range.h>
#include <tandem/simulation.h>
#include <tandem/timeline.h>

#include <iostream>
#include <sstream>

using namespace tandem;

namespace {

struct Fill {
  struct Args {
    Symm<float> x;
    Size count;
  };
  template <class Block>
  TANDEM_DEVICE static void run(Block& block, const Args& a) {
    const Range part = split(a.count, block.count(), 4)[block.index()];
    for (const Range tile : block.template tiles<float>(part))
      block.store(a.x.local(), tile, block.template load<float>(a.x.local(), tile));
  }
};

/// Draws the timeline of an own kernel; whether its blocks are in the files.
bool draws_own_kernel() {
  Simulation simulation(load_machine("h200x4"), 2, {.record = true});
  simulation.run([](World& world) {
    Stream stream = world.make_stream("main");
    stream.launch<Fill>({.blocks = 2}, {world.heap().allocate<float>(1000, "x"), 1000});
    stream.synchronize();
  });
  const trace::Timeline& timeline = simulation.timeline();
  int kernels = 0;
  for (const trace::Span& span : timeline.spans) kernels += span.kind == trace::SpanKind::kKernel ? 1 : 0;
  std::ostringstream page, picture, events;
  const trace::Report report{.title = "fill", .timelines = {timeline}};
  trace::write_report(report, page);
  trace::write_svg(report, picture);
  trace::write_chrome_trace(timeline, events);
  const auto names_it = [](const std::ostringstream& out) { return out.str().find("Fill") != std::string::npos; };
  return kernels == 4 && names_it(page) && names_it(events) && !picture.str().empty();
}

}  // namespace

int main() {
  std::cout << explain(load_machine("h200x4"));
  return split(1000, 4)[1] == Range{250, 500} && draws_own_kernel() ? 0 : 1;
}
