#include "world/peer.h"

#include <array>
#include <chrono>
#include <cstring>
#include <thread>
#include <vector>

#include "tandem/collectives.h"

namespace tandem::test {

WorldOptions options(double timeout_s, double arrival_timeout_s) {
  WorldOptions options;
  options.kind = DeviceKind::kHost;
  options.heap_bytes = 2 * kMiB;
  options.heap_limit_bytes = 64 * kMiB;
  options.timeout_s = timeout_s;
  options.arrival_timeout_s = arrival_timeout_s;
  options.join_timeout_s = 600;
  return options;
}

void expect(bool condition, const std::string& what) {
  if (!condition) throw std::runtime_error("expected: " + what);
}

std::string end_of(const WorldProcess& process) {
  for (int i = 0; i < 60000 && process.failure().empty(); ++i)
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  return process.failure();
}

void meet_by_environment() {
  WorldProcess process(placement_from_environment(60), options());
  expect(process.pes() == 4 && process.world().team().node_size == 2, "two hosts of two PEs");
  check_all_reduce(process.world());
}

void check_reach(World& world, const Symm<std::byte>& memory) {
  world.barrier();
  std::memset(memory.local(), 'a' + world.pe(), 16);
  world.barrier();
  Stream stream = world.make_stream("copies");
  for (int pe = 0; pe < world.num_pes(); ++pe) {
    std::array<std::byte, 16> copy{}, host_copy{};
    stream.copy_async(copy.data(), memory.on(pe), Size{16});
    stream.synchronize();
    world.copy_out(host_copy.data(), memory.on(pe), Size{16});
    expect(copy == host_copy, "the same by both copies");
    expect(copy[15] == static_cast<std::byte>('a' + pe), "what PE " + std::to_string(pe) + " wrote");
  }
  world.barrier();
}

void reduce_to_the_end(World& world, const Team& team) {
  const Symm<float> data = world.heap().allocate<float>(1000, "data");
  Stream stream = world.make_stream("main");
  const auto plan = make_collective(world, Collective::kAllReduce, {.max_count = 1000}, team);
  for (;;) {
    plan->run(stream, data.as<std::byte>(), data.as<std::byte>(), 1000);
    stream.synchronize();
  }
}

void check_all_reduce(World& world, Size count) {
  const Symm<float> data = world.heap().allocate<float>(count, "data");
  const std::vector<float> ones(static_cast<std::size_t>(count), 1);
  world.copy_in(data.local(), ones.data(), count * 4);
  Stream stream = world.make_stream("main");
  const auto plan = make_collective(world, Collective::kAllReduce, {.max_count = count});
  world.barrier();
  plan->run(stream, data.as<std::byte>(), data.as<std::byte>(), count);
  stream.synchronize();
  std::vector<float> sums(ones.size());
  world.copy_out(sums.data(), data.local(), count * 4);
  for (const float sum : sums) expect(sum == static_cast<float>(world.num_pes()), "the sum of ones");
  world.barrier();
}

}  // namespace tandem::test
