// Tutorial 07: one process for each device. docs/tutorials/07_processes.md explains it.
//
//   tandem launch -n 2 07_processes
//   torchrun --no-python --nproc-per-node 2 07_processes

#include <cstdio>
#include <exception>
#include <vector>

#include "tandem/worlds.h"

using namespace tandem;

// listing: program
/// Sends a vector to the next PE by copy engine, and returns the first element that arrived.
float shift(World& world) {
  constexpr Size kCount = 1024;
  const Symm<float> from = world.heap().allocate<float>(kCount, "from");
  const Symm<float> to = world.heap().allocate<float>(kCount, "to");
  const Signals arrived = world.heap().signals(1, "arrived");
  std::vector<float> values(kCount, static_cast<float>(world.pe()));
  world.copy_in(from.local(), values.data(), kCount * sizeof(float));

  const int next = (world.pe() + 1) % world.num_pes();
  Stream stream = world.make_stream("main");
  stream.copy_async(to.on(next), from.local(), kCount * sizeof(float));
  stream.write_signal(arrived.on(next), 1);  // after the copy, in stream order
  stream.wait_signal(arrived.local(), 1);
  stream.synchronize();

  world.copy_out(values.data(), to.local(), kCount * sizeof(float));
  return values[0];
}
// end of listing

// listing: main
int main() try {
  WorldProcess process(placement_from_environment(), {.heap_bytes = Size{16} << 20});
  const float first = shift(process.world());
  std::printf("PE %d of %d received the vector of PE %g\n", process.pe(), process.pes(), static_cast<double>(first));
} catch (const std::exception& error) {
  std::fprintf(stderr, "%s\n", error.what());
  return 1;
}
// end of listing
