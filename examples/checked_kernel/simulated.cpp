// ShiftAdd on the model of four GPUs, on any computer.

#include <cstdio>
#include <exception>

#include "shift_add_calls.h"

#include "tandem/simulation.h"

int main() try {
  tandem::Size wrong = 0;
  tandem::Simulation simulation(tandem::load_machine("h200x4"), 4);
  simulation.run([&](tandem::World& world) { wrong += count_wrong_sums(world); });
  std::printf("4 PEs, three calls in %.1f us simulated, %lld sums wrong\n", simulation.time_us(),
              static_cast<long long>(wrong));
  return wrong == 0 ? 0 : 1;
} catch (const std::exception& error) {
  std::fprintf(stderr, "%s\n", error.what());
  return 1;
}
