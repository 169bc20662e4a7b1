#include "bindings/nccl/communicator/simulate.h"

#include <algorithm>
#include <vector>

#include "tandem/collectives.h"
#include "tandem/simulation.h"

namespace tandem::nccl {

namespace {

void run_collective(World& world, Stream& stream, const c::Call& call) {
  CollectiveOptions options;
  options.type = call.what.type;
  options.op = call.what.op;
  options.root = call.what.root;
  options.max_count = call.count;
  const int pes = world.num_pes();
  const auto buffer = [&](Size elements, const char* name) {
    return world.heap().allocate<std::byte>(std::max<Size>(elements, 1) * size_of(options.type), name);
  };
  // Symmetric buffers are as large on all PEs, also where a PE has no use for them.
  const Collective collective = call.what.collective;
  const int root = options.root;
  const auto in = buffer(input_elements(collective, call.count, pes, root, root), "in");
  const auto out = buffer(output_elements(collective, call.count, pes, root, root), "out");
  const auto plan = make_collective(world, collective, options);
  plan->run(stream, in, out, call.count);
  stream.synchronize();
}

void run_messages(World& world, Stream& stream, const std::vector<Message>& messages, int rank) {
  const int pes = world.num_pes(), pe = world.pe();
  std::vector<Send> sends;
  std::vector<Receive> receives;
  Size most = 0;
  for (const Message& message : messages) most = std::max(most, message.bytes);
  const auto memory = world.heap().allocate<std::byte>(std::max<Size>(2 * most, 1), "messages");
  for (const Message& message : messages) {
    const int distance = (message.peer - rank + pes) % pes;
    if (!message.is_send || distance == 0) continue;
    sends.push_back({(pe + distance) % pes, memory.local(), message.bytes});
    receives.push_back({(pe - distance + pes) % pes, memory.local() + most, message.bytes});
  }
  SendRecvGroup group(world);
  const auto at_once = static_cast<std::size_t>(SendRecvGroup::kMostMessages / 2);
  for (std::size_t first = 0; first < sends.size(); first += at_once) {
    const auto end = static_cast<std::ptrdiff_t>(std::min(sends.size(), first + at_once));
    const auto begin = static_cast<std::ptrdiff_t>(first);
    group.run(stream, {sends.begin() + begin, sends.begin() + end}, {receives.begin() + begin, receives.begin() + end});
  }
  stream.synchronize();
}

}  // namespace

double predicted_us(const Work& work, const Machine& machine, int rank, int ranks) {
  if (ranks == 1) return 0;
  SimOptions options;
  options.phantom = true;
  Simulation simulation(machine, ranks, options);
  double us = 0;
  simulation.run([&](World& world) {
    Stream stream = world.make_stream("simulated");
    const double begin = world.time_us();
    for (const c::Call& call : work.collectives) run_collective(world, stream, call);
    if (!work.messages.empty()) run_messages(world, stream, work.messages, rank);
    us = std::max(us, world.time_us() - begin);
  });
  return us;
}

}  // namespace tandem::nccl
