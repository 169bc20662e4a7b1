// Programs that run between nodes, whether these are threads or processes.
#include "gpu/counted_check.h"
#include "gpu/processes/hosts_processes.h"
#include "support/operator_round_cases.h"
#include "tandem/advanced/collective_traits.h"

namespace tandem::test {

std::vector<AlgorithmInfo> algorithms_between_nodes(int pes) {
  std::vector<AlgorithmInfo> all;
  for (const AlgorithmInfo& algorithm : collective_algorithms())
    if (!algorithm.one_node_only && (algorithm.collective != Collective::kExchange || pes % 2 == 0))
      all.push_back(algorithm);
  return all;
}

std::vector<RoundsCase> cases_between_nodes(const AlgorithmInfo& algorithm, int pes) {
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
      c.in_place = number % 2 == 0 && traits(algorithm.collective).has_place;
      ++number;
      cases.push_back(c);
    }
  return cases;
}

Size stream_rounds(World& world, bool replays) {
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
  const auto enqueue = [&](Epoch round) {
    stream.copy_async(inbox.on(next), own, kCount * 4);
    if (round % 2 == 0)
      stream.write_signal(arrived.on(next), round);
    else
      stream.write_signal_from(arrived.on(next), epoch.words);
  };
  const std::unique_ptr<Replay> graph = replays ? capture_graph(stream, [&] { enqueue(1); }) : nullptr;
  for (Epoch round = 1; round <= kRounds; ++round) {
    for (Size i = 0; i < kCount; ++i)
      values[static_cast<std::size_t>(i)] =
          static_cast<std::uint32_t>(i * 7 + static_cast<Size>(round) * 13 + world.pe());
    world.copy_in(own, values.data(), kCount * 4);
    world.copy_in(epoch.words, &round, sizeof round);
    if (graph)
      graph->launch();
    else
      enqueue(round);
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

std::vector<OperatorCase> operators_between_nodes(int pes) {
  std::vector<OperatorCase> all;
  for (const Operator op : kAllOperators)
    for (const Form form : {Form::kOverlapped, Form::kSequential})
      for (const Size m : {Size{131}, Size{512}}) {
        OperatorCase c = OperatorRoundCases(pes, 1).make_case(op, m, 256, 128, form);
        c.options.copy_by = CopyBy::kSm;
        c.options.type = m == 131 ? DType::kF16 : DType::kBF16;
        all.push_back(c);
      }
  return all;
}

Size run_operator_case(World& world, Stream& stream, const OperatorMemory& memory, const OperatorCase& c) {
  return dispatch(c.options.type, [&]<class T>() {
    if constexpr (is_float<T>) return OperatorRounds<T>(world, stream, memory, c).run(3, capture_graph);
    return Size{0};
  });
}

}  // namespace tandem::test
