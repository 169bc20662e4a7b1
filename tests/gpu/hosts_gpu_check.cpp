// Checks worlds of several nodes on the GPUs that it finds. PEs are threads, which share a GPU where there are few.
// Each PE or each pair of PEs is a node. Prints what fails, and "N passed, N failed"; exit code 1 if anything failed.
//
//   hosts_gpu_check [collectives|streams|waiting|operators ...]     parts (default: all)
#include <cstdlib>
#include <map>
#include <span>

#include "gpu/counted_check.h"
#include "gpu/graph.h"
#include "support/collective_rounds.h"
#include "support/operator_round_cases.h"

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

/// Sizes: none, one, odd, one past a piece of a message. Data changes from round to round, also in replayed graphs.
std::vector<RoundsCase> cases_of(const AlgorithmInfo& algorithm, int pes) {
  std::vector<RoundsCase> cases;
  int number = 0;
  for (const DType type : {DType::kF32, DType::kBF16, DType::kI32})
    for (const Size count : {Size{0}, Size{1}, Size{1003}, (Size{16} << 10) + 1}) {
      RoundsCase c;
      c.algorithm = algorithm;
      c.type = type;
      c.count = count;
      c.root = number % pes;
      c.random = number % 2 == 1;
      c.graph = number % 3 == 2;
      c.rounds = 3;
      c.in_place = number % 2 == 0 && algorithm.collective != Collective::kAllToAll &&
                   algorithm.collective != Collective::kSendRecv && algorithm.collective != Collective::kExchange;
      ++number;
      cases.push_back(c);
    }
  return cases;
}

/// Each algorithm has a world of its own, so that one that fails leaves the others alone.
void check_collectives(const Nodes& nodes) {
  const VirtualNodes size(nodes.size);
  for (const AlgorithmInfo& algorithm : collective_algorithms()) {
    if (algorithm.one_node_only || (algorithm.collective == Collective::kExchange && nodes.pes() % 2 != 0)) continue;
    check(fmt::format("{} {} on {} nodes", name(algorithm.collective), algorithm.name, nodes.nodes), nodes.pes(),
          [&](World& world) {
            Stream stream = world.make_stream("main");
            Size wrong = 0;
            for (const RoundsCase& c : cases_of(algorithm, nodes.pes()))
              wrong += dispatch(c.type, [&]<class T>() {
                         return CollectiveRounds<T>(world, c, capture_graph).run(stream);
                       }).wrong;
            return wrong;
          });
  }
}

/// Every PE copies to the next one and signals, by plain calls of a stream.
Size stream_rounds(World& world) {
  constexpr Size kCount = (Size{40} << 10) + 1;
  constexpr Epoch kRounds = 100;
  const auto inbox = world.heap().allocate<std::uint32_t>(kCount, "inbox");
  const auto arrived = world.heap().allocate<Signal>(1, "arrived");
  auto* const own = world.heap().allocate_local<std::uint32_t>(kCount, "own");
  const auto epoch = world.heap().epochs(1, "epoch");
  const int next = (world.pe() + 1) % world.num_pes();
  const int before = (world.pe() + world.num_pes() - 1) % world.num_pes();
  Stream stream = world.make_stream("main");
  Size wrong = 0;
  Words values(kCount), got(kCount);
  for (Epoch round = 1; round <= kRounds; ++round) {
    for (Size i = 0; i < kCount; ++i)
      values[static_cast<std::size_t>(i)] =
          static_cast<std::uint32_t>(i * 7 + static_cast<Size>(round) * 13 + world.pe());
    world.copy_in(own, values.data(), kCount * 4);
    world.copy_in(epoch.words, &round, sizeof round);
    stream.copy_async(inbox.on(next), own, kCount * 4);
    if (round % 2 == 0)
      stream.write_signal(arrived.on(next), round);
    else
      stream.write_signal_from(arrived.on(next), epoch.words);
    stream.wait_signal(arrived.local(), round);
    stream.synchronize();
    world.copy_out(got.data(), inbox.local(), kCount * 4);
    for (Size i = 0; i < kCount; ++i)
      wrong += got[static_cast<std::size_t>(i)] !=
               static_cast<std::uint32_t>(i * 7 + static_cast<Size>(round) * 13 + before);
    world.barrier();
  }
  return wrong;
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
  for (const Operator op : kAllOperators)
    for (const Form form : {Form::kOverlapped, Form::kSequential})
      for (const Size m : {Size{131}, Size{512}}) {
        OperatorCase c = OperatorRoundCases(nodes.pes(), 1).make_case(op, m, 256, 128, form);
        c.options.copy_by = CopyBy::kSm;
        c.options.type = m == 131 ? DType::kF16 : DType::kBF16;
        check(fmt::format("{} on {} nodes", describe(c), nodes.nodes), nodes.pes(), [&](World& world) {
          Stream stream = world.make_stream("main");
          const OperatorMemory memory(world, Size{1} << 20);
          return dispatch(c.options.type, [&]<class T>() {
            if constexpr (is_float<T>) return OperatorRounds<T>(world, stream, memory, c).run(3, capture_graph);
            return Size{0};
          });
        });
      }
}

}  // namespace

int run_hosts_check(std::span<char* const> parts) {
  const auto wants = [&](const char* part) {
    return parts.empty() ||
           std::any_of(parts.begin(), parts.end(), [&](const char* p) { return std::string(p) == part; });
  };
  if (wants("streams")) {
    const VirtualNodes size(1);
    for (const int pes : {2, 3}) check("copies and signals of streams", pes, stream_rounds);
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
  return tandem::test::run_hosts_check({words + 1, static_cast<std::size_t>(count - 1)});
}
