#include "collectives/reference/experts_runs.h"

#include <fmt/format.h>

#include <algorithm>

namespace tandem::kernels {

namespace {

using Trials = std::vector<std::unique_ptr<ExpertTrial>>;

/// Calls `enqueue` for each trial, or for the halves of each with as many batches in flight as there can be.
template <class Enqueue>
void in_flight(const Trials& trials, std::size_t batches, const Enqueue& enqueue) {
  if (batches == 0) {
    for (const auto& trial : trials) enqueue(*trial, ExpertHalf::kBoth);
    return;
  }
  for (std::size_t sent = 0; sent < trials.size() + batches; ++sent) {
    if (sent >= batches && sent - batches < trials.size()) enqueue(*trials[sent - batches], ExpertHalf::kReceive);
    if (sent < trials.size()) enqueue(*trials[sent], ExpertHalf::kSend);
  }
}

/// Enqueues a round. All dispatches come first: a PE that receives nothing is held back by none of them. Each use has
/// other values, so that rows of an earlier use are wrong.
Trials enqueue(World& world, ExpertPlan& plan, Stream& stream, ExpertInput input, int uses) {
  Trials trials;
  trials.push_back(make_expert_trial(world, plan, input));
  while (static_cast<int>(trials.size()) < uses) {
    input.values = trials.size();
    trials.push_back(make_expert_trial(world, plan, input, trials[0]->routing()));
  }
  const auto batches = static_cast<std::size_t>(plan.options().batches);
  const bool is_fused = plan.options().transport == ExpertTransport::kFused && uses > 0;
  if (is_fused)
    trials[0]->route_and_dispatch(stream);
  else
    trials[0]->route(stream);
  if (uses == 0) return trials;
  in_flight(trials, batches, [&](ExpertTrial& trial, ExpertHalf half) {
    if (!is_fused || &trial != trials[0].get()) trial.dispatch(stream, half);
  });
  in_flight(trials, batches, [&](ExpertTrial& trial, ExpertHalf half) { trial.combine(stream, half); });
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
