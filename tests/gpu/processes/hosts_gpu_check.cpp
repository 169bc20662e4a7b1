// Checks worlds of several nodes on the GPUs that it finds. PEs are threads, which share a GPU where there are few.
// Each PE or each pair of PEs is a node. In the part "processes" each of several GPUs is a host with a process of its
// own; with TANDEM_SHARE_GPU=1, one GPU has two. Prints failures, and "N passed, N failed"; exit code 1 if anything
// failed.
//
//   hosts_gpu_check [collectives|streams|waiting|operators ...]     parts (default: all, and those of processes)
//   hosts_gpu_check processes [streams|captured|collectives|replays|operators|killed|times ...]     (default: all)
#include <algorithm>
#include <array>
#include <cstdlib>
#include <span>
#include <string_view>

#include "gpu/counted_check.h"
#include "gpu/processes/hosts_processes.h"

namespace tandem::test {

namespace {

struct Nodes {
  int nodes;
  int size;
  int pes() const { return nodes * size; }
};

/// Makes the PEs of one machine several nodes during its lifetime.
class VirtualNodes {
 public:
  explicit VirtualNodes(int size) { ::setenv("TANDEM_NODE_SIZE", std::to_string(size).c_str(), 1); }
  ~VirtualNodes() { ::unsetenv("TANDEM_NODE_SIZE"); }
  VirtualNodes(const VirtualNodes&) = delete;
  VirtualNodes& operator=(const VirtualNodes&) = delete;
};

/// Each algorithm has a world of its own, so that one that fails leaves the others alone.
void check_collectives(const Nodes& nodes) {
  const VirtualNodes size(nodes.size);
  for (const AlgorithmInfo& algorithm : algorithms_between_nodes(nodes.pes()))
    check(fmt::format("{} {} on {} nodes", name(algorithm.collective), algorithm.name, nodes.nodes), nodes.pes(),
          [&](World& world) {
            Stream stream = world.make_stream("main");
            Size wrong = 0;
            for (const RoundsCase& c : cases_between_nodes(algorithm, nodes.pes()))
              wrong += dispatch(c.type, [&]<class T>() {
                         return CollectiveRounds<T>(world, c, capture_graph).run(stream);
                       }).wrong;
            return wrong;
          });
}

/// Data comes through while as many streams as a GPU has queues for hold kernels that wait, with copies behind them.
Size rounds_beside_waits(World& world, int streams) {
  constexpr Size kBytes = Size{64} << 10;
  const auto words = world.heap().allocate<Signal>(1, "gate");
  auto* const idle = world.heap().allocate_local<std::byte>(2 * kBytes, "idle");
  std::vector<std::byte> host(kBytes);
  std::vector<Stream> waiting;
  for (int i = 0; i < streams; ++i) {
    waiting.push_back(world.make_stream("waiting"));
    waiting.back().wait_signal(words.local(), 1);
    waiting.back().copy_async(idle, idle + kBytes, kBytes);
  }
  RoundsCase c;
  for (const AlgorithmInfo& info : collective_algorithms())
    if (info.collective == Collective::kAllGather && info.name == "push") c.algorithm = info;
  c.count = (Size{64} << 10) + 1;
  c.rounds = 200;
  c.graph = true;
  Stream stream = world.make_stream("main");
  const Size wrong = CollectiveRounds<float>(world, c, capture_graph).run(stream).wrong;
  stream.write_signal(words.local(), 1);
  for (Stream& one : waiting) one.synchronize();
  stream.synchronize();
  return wrong;
}

void check_operators(const Nodes& nodes) {
  const VirtualNodes size(nodes.size);
  for (const OperatorCase& c : operators_between_nodes(nodes.pes()))
    check(fmt::format("{} on {} nodes", describe(c), nodes.nodes), nodes.pes(), [&](World& world) {
      Stream stream = world.make_stream("main");
      return run_operator_case(world, stream, OperatorMemory(world, Size{1} << 20), c);
    });
}

}  // namespace

int run_hosts_check(std::span<char* const> parts) {
  const int gpus = cuda_devices();
  const int hosts = std::getenv("TANDEM_SHARE_GPU") == nullptr ? gpus : std::max(gpus, 2);
  if (!parts.empty() && std::string_view(parts[0]) == "processes") {
    if (hosts > 1) check_processes(hosts, {parts.begin() + 1, parts.end()});
    return finish();
  }
  constexpr std::array<std::string_view, 4> kParts{"collectives", "streams", "waiting", "operators"};
  for (const std::string_view part : parts)
    if (std::find(kParts.begin(), kParts.end(), part) == kParts.end())
      report(std::string(part), "no part has such a name; parts of processes stand behind 'processes'");
  const auto wants = [&](const char* part) {
    return parts.empty() ||
           std::any_of(parts.begin(), parts.end(), [&](const char* p) { return std::string(p) == part; });
  };
  if (parts.empty() && hosts > 1) check_processes(hosts, {});
  if (wants("streams")) {
    const VirtualNodes size(1);
    for (const int pes : {2, 3})
      for (const bool replays : {false, true})
        check(replays ? "captured copies and signals of streams" : "copies and signals of streams", pes,
              [&](World& world) { return stream_rounds(world, replays); });
  }
  if (wants("waiting")) {
    const VirtualNodes size(1);
    check("all_gather beside streams that wait", 2, [](World& world) { return rounds_beside_waits(world, 12); });
  }
  for (const Nodes& nodes : {Nodes{2, 1}, Nodes{2, 2}, Nodes{3, 1}}) {
    if (wants("collectives")) check_collectives(nodes);
    if (wants("operators")) check_operators(nodes);
  }
  return finish();
}

}  // namespace tandem::test

int main(int count, char** words) {
  if (count > 3 && std::string_view(words[1]) == "--host")
    return tandem::test::run_host({words + 2, static_cast<std::size_t>(count - 2)});
  return tandem::test::run_hosts_check({words + 1, static_cast<std::size_t>(count - 1)});
}
