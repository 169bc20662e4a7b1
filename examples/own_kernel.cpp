// A kernel of one's own: every PE sends a vector to the next PE and adds what arrives. Runs on any computer. For one
// launch: checked_kernel/ has the epochs and the second signal that let a kernel be called again and again.
//
//   own_kernel [REPORT.html]     also writes the kernel's timeline as a page

#include <algorithm>
#include <cstdio>
#include <vector>

#include "tandem/simulation.h"
#include "tandem/timeline.h"

using namespace tandem;

struct ShiftAdd {
  struct Args {
    Symm<float> x, received;
    Signals arrived;
    Size count;
  };

  template <class Block>
  TANDEM_DEVICE static void run(Block& block, const Args& a) {
    const Range part = split(a.count, block.count(), 4)[block.index()];
    const Signals arrived = a.arrived + block.index();
    const int next = (block.pe() + 1) % block.num_pes();
    block.put_signal_nbi(a.received + part.begin, a.x.local() + part.begin, part.size(), arrived, 1, next);
    block.wait(arrived, 1, 1);  // what the previous PE sent is here
    block.quiet();              // and what this one sent has left, so x may change
    for (const Range tile : block.template tiles<float>(part)) {
      const auto mine = block.template load<float>(a.x.local(), tile);
      block.store(a.x.local(), tile, mine + block.template load<float>(a.received.local(), tile));
    }
  }
};

int main(int argc, char** argv) {
  int wrong = 0;
  Simulation simulation(load_machine("h200x4"), 4, {.record = argc > 1});
  simulation.run([&](World& world) {
    const Size count = 1 << 20;
    const auto x = world.heap().allocate<float>(count, "x");
    const auto received = world.heap().allocate<float>(count, "received");
    const Size bytes = count * Size{sizeof(float)};
    std::vector<float> values(count, static_cast<float>(world.pe()));
    world.copy_in(x.local(), values.data(), bytes);
    Stream stream = world.make_stream("main");
    stream.launch<ShiftAdd>({.blocks = 16}, {x, received, world.heap().signals(16, "arrived"), count});
    stream.synchronize();
    world.copy_out(values.data(), x.local(), bytes);
    const auto sum = static_cast<float>(world.pe() + (world.pe() + 3) % 4);
    wrong += static_cast<int>(count - std::count(values.begin(), values.end(), sum));
  });
  std::printf("4 PEs, %.1f us simulated, %d wrong\n", simulation.time_us(), wrong);
  if (argc > 1) trace::write_report({.title = "Shift and add", .timelines = {simulation.timeline()}}, argv[1]);
  return wrong == 0 ? 0 : 1;
}
