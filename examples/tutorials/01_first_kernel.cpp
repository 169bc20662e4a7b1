// Tutorial 01: every PE sends a vector to the next PE. docs/tutorials/01_first_kernel.md explains the program.

#include <cstdio>
#include <exception>
#include <vector>

#include "tandem/simulation.h"

using namespace tandem;

// listing: kernel
struct Shift {
  struct Args {
    Symm<float> from;  // this PE's vector
    Symm<float> to;    // the vector that the previous PE sends
    Signals arrived;   // 1 when `to` is complete
    Size count;
  };

  template <class Block>
  TANDEM_DEVICE static void run(Block& block, const Args& a) {
    const int next = (block.pe() + 1) % block.num_pes();
    block.put_signal(a.to, a.from.local(), a.count, a.arrived, 1, next);
    block.wait(a.arrived, 1, 1);  // one word, at least 1
  }
};
// end of listing

// listing: host
/// Runs on every PE. Returns the first element that this PE received.
float shift(World& world) {
  constexpr Size kCount = 1024;
  SymmetricHeap& heap = world.heap();
  const Shift::Args args{heap.allocate<float>(kCount, "from"), heap.allocate<float>(kCount, "to"),
                         heap.signals(1, "arrived"), kCount};
  std::vector<float> values(kCount, static_cast<float>(world.pe()));
  world.copy_in(args.from.local(), values.data(), kCount * sizeof(float));

  Stream stream = world.make_stream("main");
  stream.launch<Shift>({.blocks = 1}, args);
  stream.synchronize();

  world.copy_out(values.data(), args.to.local(), kCount * sizeof(float));
  return values[0];
}
// end of listing

// listing: main
int main() try {
  Simulation simulation(load_machine("h200x4"), 4);
  std::vector<float> received(4);
  simulation.run([&](World& world) { received[static_cast<std::size_t>(world.pe())] = shift(world); });
  for (int pe = 0; pe < 4; ++pe)
    std::printf("PE %d received the vector of PE %g\n", pe,
                static_cast<double>(received[static_cast<std::size_t>(pe)]));
} catch (const std::exception& error) {
  std::fprintf(stderr, "%s\n", error.what());
  return 1;
}
// end of listing
