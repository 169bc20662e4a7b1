#include "support/collective_grid.h"

#include <iterator>

#include "support/pairwise.h"

namespace tandem {

void PrintTo(const AlgorithmInfo& info, std::ostream* out) { *out << name(info.collective) << " " << info.name; }

}  // namespace tandem

namespace tandem::test {

namespace {
enum Factor : std::size_t { kAlgorithm, kLayout, kAmount, kType, kOp, kInPlace, kRandom, kBlocks, kSeed };
constexpr int kBlockChoices[] = {0, 1, 3};
constexpr int kSeeds = 20;
}  // namespace

const std::vector<Layout>& layouts() {
  static const std::vector<Layout> all = [] {
    std::vector<Layout> list;
    for (int pes = 1; pes <= 9; ++pes) list.push_back({"h200x8", 1, pes});
    for (const char* machine : {"h100x8-rail", "h200x8"})
      for (const auto& [nodes, per_node] : {std::pair{2, 2}, {2, 4}, {3, 3}, {2, 8}})
        list.push_back({machine, nodes, nodes * per_node});
    return list;
  }();
  return all;
}

const std::vector<Amount>& amounts() {
  // Nothing; one; unaligned; some blocks' worth; one past a chunk of the tree; much.
  static const std::vector<Amount> all = {{0, 0, 0},    {1, 0, 0},         {0, 0, 3},
                                          {1000, 0, 0}, {0, 128 << 10, 1}, {0, 1 << 20, 0}};
  return all;
}

Size count_of(const Amount& amount, Collective collective, DType type, int pes) {
  const Size shares = collective == Collective::kReduceScatter ? pes : 1;
  return amount.elements + amount.bytes / size_of(type) / shares + amount.more_elements;
}

bool can_run(const AlgorithmInfo& info, const Layout& layout) { return layout.nodes == 1 || !info.one_node_only; }
bool can_run(const AlgorithmInfo& info, ReduceOp op) { return info.name != "multimem" || op != ReduceOp::kProd; }
bool can_run(const AlgorithmInfo& info, DType type) {
  return info.name != "multimem" || (type != DType::kI8 && type != DType::kU8);
}

std::vector<AlgorithmInfo> reducing_algorithms() {
  std::vector<AlgorithmInfo> list;
  for (const AlgorithmInfo& info : collective_algorithms())
    if (reduces(info.collective)) list.push_back(info);
  return list;
}

std::vector<CollectiveCase> pairwise_cases() {
  const std::vector<AlgorithmInfo> algorithms = reducing_algorithms();
  const auto size = [](const auto& list) { return static_cast<int>(std::size(list)); };
  const auto allowed = [&](std::size_t i, int a, std::size_t j, int b) {
    if (i != kAlgorithm) return true;
    const AlgorithmInfo& info = algorithms[static_cast<std::size_t>(a)];
    const auto at = static_cast<std::size_t>(b);
    return j == kLayout ? can_run(info, layouts()[at])
           : j == kOp   ? can_run(info, kReduceOps[at])
           : j == kType ? can_run(info, kDTypes[at])
                        : true;
  };
  const Pairwise pairwise({size(algorithms), size(layouts()), size(amounts()), size(kDTypes), size(kReduceOps), 2, 2,
                           size(kBlockChoices), kSeeds},
                          allowed);
  std::vector<CollectiveCase> cases;
  for (const std::vector<int>& row : pairwise.rows()) {
    const auto at = [&](Factor factor) { return static_cast<std::size_t>(row[factor]); };
    const AlgorithmInfo& info = algorithms[at(kAlgorithm)];
    const Layout& layout = layouts()[at(kLayout)];
    CollectiveCase c;
    c.collective = info.collective;
    c.algorithm = info.name;
    c.machine = layout.machine;
    c.nodes = layout.nodes;
    c.pes = layout.pes;
    c.type = kDTypes[at(kType)];
    c.op = kReduceOps[at(kOp)];
    c.count = count_of(amounts()[at(kAmount)], c.collective, c.type, c.pes);
    if (amounts()[at(kAmount)].bytes >= 1 << 20) c.calls = 3;
    c.in_place = row[kInPlace] == 1;
    c.random = row[kRandom] == 1;
    c.blocks = kBlockChoices[at(kBlocks)];
    c.seed = 1 + at(kSeed);
    c.root = c.collective == Collective::kReduce ? static_cast<int>(cases.size()) % c.pes : 0;
    cases.push_back(c);
  }
  return cases;
}

}  // namespace tandem::test
