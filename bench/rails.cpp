// One ring against rings that alternate over the node's rail-aligned NICs. It measures an all-reduce on four nodes of
// h100x8-rail, and the use of each NIC of the first node. It prints a table; `--json FILE` also writes it.

#include <fmt/format.h>

#include <fstream>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "tandem/collectives.h"
#include "tandem/simulation.h"

using namespace tandem;

namespace {

struct Run {
  double us;
  std::vector<double> nics;  // of node 0, outgoing
};

Run run(const std::string& algorithm, Size bytes) {
  SimOptions options;
  options.phantom = true;
  Simulation simulation(load_machine("h100x8-rail"), 32, options);
  simulation.run([&](World& world) {
    CollectiveOptions collective;
    collective.type = DType::kBF16;
    collective.max_count = bytes / 2;
    collective.algorithm = algorithm;
    const auto in = world.heap().allocate<std::byte>(bytes, "in");
    const auto out = world.heap().allocate<std::byte>(bytes, "out");
    const auto plan = make_collective(world, Collective::kAllReduce, collective);
    Stream stream = world.make_stream("main");
    plan->run(stream, in, out, bytes / 2);
    stream.synchronize();
  });
  Run result{simulation.time_us(), {}};
  for (const ResourceUse& use : simulation.resource_use())
    if (use.name.find("of node 0 out") != std::string::npos) result.nics.push_back(use.busy);
  return result;
}

}  // namespace

int main(int argc, char** argv) {
  nlohmann::json rows;
  fmt::print("{:>10} {:>10} {:>10}  NICs of node 0, share of the time in which they send\n", "bytes", "algorithm",
             "us");
  for (const Size bytes : {Size{1} << 20, Size{1} << 24, Size{1} << 28, Size{1} << 30})
    for (const char* algorithm : {"ring", "multi_ring", "two_level"}) {
      const Run result = run(algorithm, bytes);
      fmt::print("{:>10} {:>10} {:>10.1f} ", bytes, algorithm, result.us);
      for (const double busy : result.nics) fmt::print(" {:>3.0f}%", busy * 100);
      fmt::print("\n");
      rows.push_back({{"bytes", bytes}, {"algorithm", algorithm}, {"us", result.us}, {"nic_busy", result.nics}});
    }
  if (argc == 3 && std::string_view(argv[1]) == "--json") std::ofstream(argv[2]) << rows.dump(2) << "\n";
  return 0;
}
