#include "collectives/reference/experts_runs.h"

#include <fmt/format.h>

#include <algorithm>

namespace tandem::kernels {

namespace {

using Trials = std::vector<std::unique_ptr<ExpertTrial>>;

/// Enqueues a round. All dispatches come first: a PE that receives nothing is held back by none of them.
Trials enqueue(World& world, ExpertPlan& plan, Stream& stream, const ExpertInput& input, int uses) {
  Trials trials;
  trials.push_back(make_expert_trial(world, plan, input));
  while (static_cast<int>(trials.size()) < uses)
    trials.push_back(make_expert_trial(world, plan, input, trials[0]->routing()));
  trials[0]->route(stream);
  if (uses == 0) return trials;
  for (const auto& trial : trials) trial->dispatch(stream);
  for (const auto& trial : trials) trial->combine(stream);
  return trials;
}

}  // namespace

std::string wrong_of_runs(World& world, const ExpertRuns& runs) {
  const auto plan = make_experts(world, runs.options);
  Stream stream = world.make_stream("main");
  std::vector<Trials> rounds;
  for (const ExpertRound& round : runs.rounds) {
    ExpertInput input = runs.input;
    input.routing = round.routing;
    input.tokens = round.tokens;
    input.seed = rounds.size();
    rounds.push_back(enqueue(world, *plan, stream, input, round.uses));
  }
  stream.synchronize();
  for (std::size_t i = 0; i < rounds.size(); ++i)
    for (const auto& trial : rounds[i])
      if (const ExpertErrors errors = trial->errors(); errors.wrong > 0)
        return fmt::format("PE {}, round {} ({}): {}", world.pe(), i + 1, runs.rounds[i].routing, errors.first);
  return "";
}

}  // namespace tandem::kernels
