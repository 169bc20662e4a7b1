#pragma once
/// The inputs of a trial of experts: choices, and small integers whose sums are exact.

#include <vector>

#include "collectives/reference/expert_choices.h"
#include "collectives/reference/expert_trial.h"

namespace tandem::kernels {

/// The choices of all PEs, and the values of rows.
class ExpertExample {
 public:
  /// `only`: the only PE whose choices are wanted, or -1.
  ExpertExample(const ExpertOptions& o, const ExpertInput& input, int pes, int only)
      : input_(input), top_k_(o.top_k), ids_(static_cast<std::size_t>(pes)) {
    for (int pe = 0; pe < pes; ++pe)
      if (only < 0 || pe == only)
        ids_[static_cast<std::size_t>(pe)] =
            expert_choices(input.routing, o.experts, pes, o.top_k, pe, tokens_of(pe), input.seed);
  }

  Size tokens(int pe) const { return static_cast<Size>(ids(pe).size()) / top_k_; }
  const std::vector<std::int32_t>& ids(int pe) const { return ids_[static_cast<std::size_t>(pe)]; }
  int id(int pe, Size token, int k) const { return ids(pe)[static_cast<std::size_t>(token * top_k_ + k)]; }
  float weight(int pe, Size token, int k) const {
    return input_.weights ? static_cast<float>(1 << (pe + token + k) % 3) * 0.5F : 1.0F;
  }
  float x(int pe, Size token, Size i) const {
    const float integer = small(pe * 7 + token * 5 + i * 3, 17);
    if (!input_.fractions) return integer;
    return integer * 0.37F * static_cast<float>(token + 1) + small(i * 13 + pe, 101) * 0.001F;
  }
  /// Integers up to 7, both signs of which 15 neighbours have. So fp8 values with a scale for each 128 are exact.
  float few(int pe, Size token, Size i) const { return small(pe * 7 + token * 5 + i * 2, 15); }
  float y(int expert, int pe, Size token, Size i) const { return small(expert * 11 + pe * 3 + token * 7 + i * 5, 9); }
  float add(Size token, Size i) const { return small(token + i, 5); }

 private:
  Size tokens_of(int pe) const { return tokens_of_pe(input_.routing, pe, input_.tokens, input_.seed); }
  float small(Size number, Size kinds) const {
    const Size middle = kinds / 2;
    const auto shift = static_cast<Size>(input_.seed % 1000 + 4 * (input_.values % 1000));
    return static_cast<float>((number + shift) % kinds - middle);
  }

  ExpertInput input_;
  int top_k_;
  std::vector<std::vector<std::int32_t>> ids_;  // by PE
};

}  // namespace tandem::kernels
