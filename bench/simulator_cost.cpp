// The cost of the simulator itself: a ring all-reduce of 1 GB in phantom mode over 8 to 1,024 PEs of h100x8-rail. It
// measures real seconds and memory against events. It prints a table; `--json FILE` also writes it.

#include <fmt/format.h>
#include <sys/resource.h>

#include <chrono>
#include <cstdio>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string_view>

#include "tandem/collectives.h"
#include "tandem/simulation.h"

using namespace tandem;

namespace {

struct Cost {
  double simulated_us;
  double seconds;
  std::uint64_t events;
};

Cost ring(int pes, Size count) {
  SimOptions options;
  options.phantom = true;
  const auto begin = std::chrono::steady_clock::now();
  Simulation simulation(load_machine("h100x8-rail"), pes, options);
  simulation.run([&](World& world) {
    CollectiveOptions collective;
    collective.max_count = count;
    collective.algorithm = "ring";
    collective.blocks = 1;
    const auto in = world.heap().allocate<std::byte>(count * 4, "in");
    const auto out = world.heap().allocate<std::byte>(count * 4, "out");
    const auto plan = make_collective(world, Collective::kAllReduce, collective);
    Stream stream = world.make_stream("main");
    plan->run(stream, in, out, count);
    stream.synchronize();
  });
  const std::chrono::duration<double> took = std::chrono::steady_clock::now() - begin;
  return {simulation.time_us(), took.count(), simulation.events()};
}

double peak_gib() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return static_cast<double>(usage.ru_maxrss) / (1 << 20);
}

}  // namespace

int main(int argc, char** argv) {
  nlohmann::json rows;
  fmt::print("{:>6} {:>12} {:>12} {:>10} {:>12} {:>10}\n", "PEs", "simulated ms", "events", "seconds", "ns an event",
             "GiB");
  for (int pes = 8; pes <= 1024; pes *= 2) {
    const Cost cost = ring(pes, Size{1} << 28);
    const double ns = cost.seconds * 1e9 / static_cast<double>(cost.events);
    fmt::print("{:>6} {:>12.2f} {:>12} {:>10.2f} {:>12.0f} {:>10.2f}\n", pes, cost.simulated_us / 1e3, cost.events,
               cost.seconds, ns, peak_gib());
    std::fflush(stdout);
    rows.push_back({{"pes", pes},
                    {"simulated_us", cost.simulated_us},
                    {"events", cost.events},
                    {"seconds", cost.seconds},
                    {"peak_gib", peak_gib()}});
  }
  if (argc == 3 && std::string_view(argv[1]) == "--json") std::ofstream(argv[2]) << rows.dump(2) << "\n";
  return 0;
}
