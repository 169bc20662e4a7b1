#include "world/cases.h"

#include <iterator>
#include <mutex>

#include "support/expert_stress.h"
#include "support/operator_round_cases.h"
#include "support/pairwise.h"
#include "tandem/advanced/collective_traits.h"

namespace tandem::test {

namespace {

enum Factor : std::size_t { kAlgorithm, kType, kOp, kCount, kInPlace, kRandom, kBlocks };
constexpr Size kCounts[] = {0, 1, 1003, (Size{16} << 10) + 1};
constexpr int kBlockChoices[] = {0, 1, 3};

}  // namespace

WorldOptions host_options(Size heap_bytes) {
  WorldOptions options;
  options.kind = DeviceKind::kHost;
  options.heap_bytes = heap_bytes;
  options.heap_limit_bytes = Size{2} << 30;
  return options;
}

std::vector<RoundsCase> collective_cases(int pes, bool whole) {
  const std::vector<AlgorithmInfo> all = collective_algorithms();
  const auto size = [](const auto& list) { return static_cast<int>(std::size(list)); };
  const auto allowed = [&](std::size_t i, int a, std::size_t j, int b) {
    if (i != kAlgorithm) return true;
    const AlgorithmInfo& info = all[static_cast<std::size_t>(a)];
    const Collective collective = info.collective;
    const bool by_multicast = info.name == "multimem";  // it adds and compares, words of 16 bits and more
    if (j == kOp && by_multicast && kReduceOps[b] == ReduceOp::kProd) return false;
    if (j == kType && by_multicast && (kDTypes[b] == DType::kI8 || kDTypes[b] == DType::kU8)) return false;
    if (j == kInPlace) return b == 0 || traits(collective).has_place;
    return j != kOp || reduces(collective) || kReduceOps[b] == ReduceOp::kSum;
  };
  const Pairwise pairwise({size(all), size(kDTypes), size(kReduceOps), size(kCounts), 2, 2, size(kBlockChoices)},
                          allowed);
  std::vector<RoundsCase> cases;
  std::size_t number = 0;
  for (const std::vector<int>& row : pairwise.rows()) {
    if (number++ % 4 != static_cast<std::size_t>(pes) % 4 && !whole) continue;
    RoundsCase c;
    c.algorithm = all[static_cast<std::size_t>(row[kAlgorithm])];
    c.type = kDTypes[row[kType]];
    c.op = kReduceOps[row[kOp]];
    c.count = kCounts[row[kCount]];
    c.in_place = row[kInPlace] == 1;
    c.random = row[kRandom] == 1;
    c.blocks = kBlockChoices[row[kBlocks]];
    c.root = static_cast<int>(cases.size()) % pes;
    cases.push_back(c);
  }
  return cases;
}

std::vector<RoundsCase> large_cases(int pes) {
  std::vector<RoundsCase> cases;
  for (const AlgorithmInfo& algorithm : collective_algorithms()) {
    RoundsCase c;
    c.algorithm = algorithm;
    c.type = cases.size() % 2 == 0 ? DType::kBF16 : DType::kI32;
    c.op = ReduceOp::kSum;
    c.count = (Size{128} << 10) + 1;
    c.root = static_cast<int>(cases.size()) % pes;
    cases.push_back(c);
  }
  return cases;
}

std::vector<RoundsCase> between_nodes(std::vector<RoundsCase> cases) {
  std::erase_if(cases, [](const RoundsCase& c) { return c.algorithm.one_node_only; });
  return cases;
}

std::vector<OperatorCase> operator_cases(int pes) {
  std::vector<OperatorCase> cases;
  int number = 0;
  for (const Operator op : kAllOperators)
    for (const Form form : {Form::kSuitable, Form::kOverlapped, Form::kSequential, Form::kDecomposed})
      for (const CopyBy copy_by : {CopyBy::kCopyEngine, CopyBy::kSm})
        for (const Direction direction : {Direction::kPush, Direction::kPull}) {
          if (op == Operator::kGemmAllReduce && (form == Form::kDecomposed || direction == Direction::kPull)) continue;
          OperatorCase c = OperatorRoundCases(pes, 1).make_case(op, number % 2 == 0 ? 131 : 64, 96, 64, form);
          c.options.copy_by = copy_by;
          c.options.direction = direction;
          c.options.splits = 1 + number % 3;
          const auto orders = tile_orders(op);
          c.options.order = orders[static_cast<std::size_t>(number) % orders.size()];
          c.options.type = number % 3 == 1 ? DType::kF16 : number % 3 == 2 ? DType::kF32 : DType::kBF16;
          c.fewer_rows = number % 4 == 3;
          if (op == Operator::kGemmAllReduce && form == Form::kOverlapped) c.options.shots = 1 + number % 2;
          ++number;
          cases.push_back(c);
        }
  return cases;
}

std::vector<std::string> run_collectives(World& world, const std::vector<RoundsCase>& cases) {
  std::vector<std::string> wrong;
  Stream stream = world.make_stream("main");
  for (const RoundsCase& c : cases) {
    const RoundsResult result = dispatch(c.type, [&]<class T>() { return CollectiveRounds<T>(world, c).run(stream); });
    if (result.wrong > 0) wrong.push_back(describe(c, world.num_pes()) + ": " + result.first_wrong);
  }
  return wrong;
}

std::vector<std::string> run_operators(World& world, const std::vector<OperatorCase>& cases) {
  std::vector<std::string> wrong;
  Stream stream = world.make_stream("main");
  const OperatorMemory memory(world, Size{1} << 20);
  for (const OperatorCase& c : cases) {
    Size count = 0;
    dispatch(c.options.type, [&]<class T>() {
      if constexpr (is_float<T>) count = OperatorRounds<T>(world, stream, memory, c).run(0);
    });
    if (count > 0) wrong.push_back(fmt::format("{}: {} wrong", describe(c), count));
  }
  return wrong;
}

std::vector<std::string> run_expert_stress(World& world) {
  constexpr int kRounds = 5, kTurns = 5, kMostPasses = 60;
  std::vector<std::string> wrong;
  for (const ExpertOptions& options : stressed_experts(world.num_pes())) {
    const Size words = ExpertStress(world, options, kMostPasses).wrong(kRounds, kTurns);
    if (words > 0) wrong.push_back(fmt::format("{}: {} words differ", describe_stress(options), words));
  }
  return wrong;
}

std::vector<std::string> answers_of_threads(int pes, const std::function<std::vector<std::string>(World&)>& run) {
  std::mutex mutex;
  std::vector<std::string> answers;
  WorldThreads(pes, host_options()).run([&](World& world) {
    const std::vector<std::string> own = run(world);
    const std::lock_guard lock(mutex);
    answers.insert(answers.end(), own.begin(), own.end());
  });
  return answers;
}

}  // namespace tandem::test
