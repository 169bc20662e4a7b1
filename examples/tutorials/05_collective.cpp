// Tutorial 05: two collectives in a program. docs/tutorials/05_collective.md explains it.

#include <cstdio>
#include <exception>
#include <string>
#include <vector>

#include "tandem/collectives.h"
#include "tandem/simulation.h"

using namespace tandem;

/// The results of one PE.
struct Found {
  std::string algorithm;
  std::vector<float> sums;      // one for each call
  std::vector<float> gathered;  // the first element of each PE's part
};

Found run(World& world) {
  // listing: plan
  constexpr Size kCount = 1 << 16;
  Stream stream = world.make_stream("main");
  const Symm<float> x = world.heap().allocate<float>(kCount, "x");
  const auto all_reduce = make_collective(world, Collective::kAllReduce, {.type = DType::kF32, .max_count = kCount});
  // end of listing

  Found found{all_reduce->algorithm(), {}, {}};
  // listing: calls
  std::vector<float> values(kCount, static_cast<float>(world.pe() + 1));
  world.copy_in(x.local(), values.data(), kCount * sizeof(float));
  for (const Size count : {kCount, Size{1000}, Size{1}}) {  // any count up to max_count
    all_reduce->run(stream, x.as<std::byte>(), x.as<std::byte>(), count);
    stream.synchronize();
    world.copy_out(values.data(), x.local(), kCount * sizeof(float));
    found.sums.push_back(values[0]);
  }
  // end of listing

  // listing: gather
  const Team node = world.node_team();
  const Symm<float> parts = world.heap().allocate<float>(node.size * kCount, "parts");
  const auto all_gather = make_collective(world, Collective::kAllGather, {.max_count = kCount}, node);
  world.copy_in(x.local(), std::vector<float>(kCount, static_cast<float>(world.pe())).data(), kCount * sizeof(float));
  all_gather->run(stream, x.as<std::byte>(), parts.as<std::byte>(), kCount);
  stream.synchronize();
  // end of listing
  for (int member = 0; member < node.size; ++member)
    world.copy_out(&found.gathered.emplace_back(), parts.local() + member * kCount, sizeof(float));
  return found;
}

int main() try {
  Simulation simulation(load_machine("h200x4"), 4, {.pes_per_node = 2});  // two virtual nodes
  std::vector<Found> found(4);
  simulation.run([&](World& world) { found[static_cast<std::size_t>(world.pe())] = run(world); });
  std::printf("all_reduce by %s\n", found[0].algorithm.c_str());
  for (std::size_t pe = 0; pe < found.size(); ++pe) {
    std::printf("PE %zu: sums", pe);
    for (const float sum : found[pe].sums) std::printf(" %g", static_cast<double>(sum));
    std::printf("; gathered in its node");
    for (const float part : found[pe].gathered) std::printf(" %g", static_cast<double>(part));
    std::printf("\n");
  }
} catch (const std::exception& error) {
  std::fprintf(stderr, "%s\n", error.what());
  return 1;
}
