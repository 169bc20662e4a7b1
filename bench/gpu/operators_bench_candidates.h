#pragma once
/// The configurations of an operator that operators_bench measures.

#include <string>
#include <vector>

#include "gpu/operators_bench_rounds.h"

namespace tandem::bench {

struct Candidate {
  std::string name;  ///< empty: what a plan takes by itself
  OperatorOptions options;
};

/// Returns the plan's own choice first, then the sequential form, then the candidates of the settings.
std::vector<Candidate> candidates(Operator op, const Layer& layer, const Settings& settings);

}  // namespace tandem::bench
