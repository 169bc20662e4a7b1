// Routings and calls of the products of experts, one behind the other.
#include <fmt/format.h>

#include "operators/reference/expert_gemm_trial.h"

namespace tandem::ops {

std::string wrong_of_expert_gemms(World& world, Stream& main, const ExpertGemmRuns& runs) {
  const auto plan = make_expert_gemms(world, runs.options);
  std::vector<std::vector<std::unique_ptr<ExpertGemmTrial>>> rounds;
  for (const kernels::ExpertRound& round : runs.rounds) {
    kernels::ExpertInput input = runs.input;
    input.routing = round.routing;
    input.tokens = round.tokens;
    input.seed = rounds.size();
    auto& trials = rounds.emplace_back();
    trials.push_back(make_expert_gemm_trial(world, *plan, input));
    while (static_cast<int>(trials.size()) < round.uses) {
      input.values = trials.size();
      trials.push_back(make_expert_gemm_trial(world, *plan, input, trials.front().get()));
    }
    trials.front()->route(main);
    if (round.uses == 0) continue;
    for (const auto& trial : trials) trial->dispatch_gemm(main);
    for (const auto& trial : trials)
      if (runs.combines) trial->gemm_combine(main);
  }
  main.synchronize();
  for (std::size_t i = 0; i < rounds.size(); ++i)
    for (const auto& trial : rounds[i])
      if (const auto errors = trial->errors(); errors.wrong > 0)
        return fmt::format("PE {}, round {} ({}): {}", world.pe(), i + 1, runs.rounds[i].routing, errors.first);
  return "";
}

}  // namespace tandem::ops
