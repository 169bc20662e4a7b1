// Tutorial 02: the kernel of tutorial 01, called again and again. docs/tutorials/02_signals_and_epochs.md explains it.

#include <cstdio>
#include <exception>
#include <vector>

#include "tandem/simulation.h"

using namespace tandem;

// listing: kernel
struct ShiftOften {
  struct Args {
    Symm<float> from, to;
    Signals ready;    // [block]: the next PE has started this call, so its `to` may be overwritten
    Signals arrived;  // [block]: this block's part of `to` is complete
    Epochs epochs;    // [block]: the number of the call
    Size count;
  };

  template <class Block>
  TANDEM_DEVICE static void run(Block& block, const Args& a) {
    const int n = block.num_pes();
    const int next = (block.pe() + 1) % n;
    const int previous = (block.pe() + n - 1) % n;
    const Range part = split(a.count, block.count(), 4)[block.index()];
    const Signals ready = a.ready + block.index();
    const Signals arrived = a.arrived + block.index();
    const Epoch epoch = block.next_epoch(a.epochs);

    block.notify(ready, epoch, previous);  // "my `to` is free"
    block.wait(ready, 1, epoch);           // the next PE says the same
    block.put_signal(a.to + part.begin, a.from.local() + part.begin, part.size(), arrived, epoch, next);
    block.wait(arrived, 1, epoch);
  }
};
// end of listing

/// Runs on every PE. Returns the last element that this PE received in each call, and the values of its signals.
std::vector<double> shift_often(World& world) {
  constexpr Size kCount = 1000;  // not a multiple of the blocks
  constexpr int kBlocks = 4;
  SymmetricHeap& heap = world.heap();
  const ShiftOften::Args args{heap.allocate<float>(kCount, "from"), heap.allocate<float>(kCount, "to"),
                              heap.signals(kBlocks, "ready"),       heap.signals(kBlocks, "arrived"),
                              heap.epochs(kBlocks, "epochs"),       kCount};
  Stream stream = world.make_stream("main");
  std::vector<double> found;
  // listing: calls
  for (int call = 1; call <= 3; ++call) {
    std::vector<float> values(kCount, static_cast<float>(100 * call + world.pe()));
    world.copy_in(args.from.local(), values.data(), kCount * sizeof(float));
    stream.launch<ShiftOften>({.blocks = kBlocks}, args);
    stream.synchronize();
    world.copy_out(values.data(), args.to.local(), kCount * sizeof(float));
    found.push_back(static_cast<double>(values.back()));
  }
  Signal ready[kBlocks], arrived[kBlocks];
  world.copy_out(ready, args.ready.local(), sizeof ready);
  world.copy_out(arrived, args.arrived.local(), sizeof arrived);
  // end of listing
  found.push_back(static_cast<double>(ready[kBlocks - 1].value));
  found.push_back(static_cast<double>(arrived[kBlocks - 1].value));
  return found;
}

int main() try {
  Simulation simulation(load_machine("h200x4"), 4);
  std::vector<std::vector<double>> found(4);
  simulation.run([&](World& world) { found[static_cast<std::size_t>(world.pe())] = shift_often(world); });
  for (int pe = 0; pe < 4; ++pe) {
    const std::vector<double>& f = found[static_cast<std::size_t>(pe)];
    std::printf("PE %d received %g, %g, %g; ready = %g, arrived = %g\n", pe, f[0], f[1], f[2], f[3], f[4]);
  }
} catch (const std::exception& error) {
  std::fprintf(stderr, "%s\n", error.what());
  return 1;
}
