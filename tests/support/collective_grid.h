#pragma once
/// The grid of cases over which every reducing collective is checked: pairwise in CI, as a whole or in parts
/// behind TANDEM_FULL (full_grid.h).

#include <vector>

#include "support/collective_check.h"

namespace tandem {

/// Prints an algorithm as a parameter of GoogleTest.
void PrintTo(const AlgorithmInfo& info, std::ostream* out);

}  // namespace tandem

namespace tandem::test {

struct Layout {
  const char* machine;
  int nodes;
  int pes;
};

/// 1 to 9 PEs on one node; 2x2, 2x4, 3x3 and 2x8 between real nodes and between virtual ones of one host.
const std::vector<Layout>& layouts();

/// A size, whatever the element: a number of elements, or bytes of the larger buffer.
struct Amount {
  Size elements;
  Size bytes;
  Size more_elements;
};
const std::vector<Amount>& amounts();
/// `count` of a case.
Size count_of(const Amount& amount, Collective collective, DType type, int pes);

/// Whether the algorithm can run the layout, the operation, the type.
bool can_run(const AlgorithmInfo& info, const Layout& layout);
bool can_run(const AlgorithmInfo& info, ReduceOp op);
bool can_run(const AlgorithmInfo& info, DType type);

/// All algorithms of reducing collectives.
std::vector<AlgorithmInfo> reducing_algorithms();

/// Every pair of algorithm, layout, amount, type, operation, in-place, kind of data, blocks and seed (1 to 20).
std::vector<CollectiveCase> pairwise_cases();

}  // namespace tandem::test
