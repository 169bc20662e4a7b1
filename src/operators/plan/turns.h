#pragma once
/// Two plans of the same operator that take turns, call by call.
///
/// A plan's buffers may be written again when all peers are through with its last call, so with one plan each call
/// begins when the slowest PE has ended the one before. With two, a PE that is ahead by less than a call waits for data
/// alone. All PEs run an operator in one order, so they agree on whose turn it is, in graphs too; in a graph of an odd
/// number of calls one plan has two turns in a row, so where a call's beginning tells of those before it, both plans
/// count them together.

#include <array>
#include <memory>

#include "operators/plan/operator.h"

namespace tandem::ops {

class Turns final : public OperatorPlan {
 public:
  Turns(std::unique_ptr<OperatorPlan> first, std::unique_ptr<OperatorPlan> second)
      : OperatorPlan(first->options()), plans_{std::move(first), std::move(second)} {}

  std::string way(Size m) const override { return plans_.front()->way(m); }

 private:
  void enqueue(Stream& main, const OperatorCall& call) override {
    plans_[turn_]->run(main, call);
    turn_ = 1 - turn_;
  }

  std::array<std::unique_ptr<OperatorPlan>, 2> plans_;
  std::size_t turn_ = 0;
};

/// One plan, or two that take turns.
inline std::unique_ptr<OperatorPlan> by_turns(World& world, const Settings& settings,
                                              std::unique_ptr<OperatorPlan> (*make)(World&, const Settings&)) {
  if (!settings.double_buffered) return make(world, settings);
  Settings of_both = settings;
  of_both.turns = turn_words(world);
  auto first = make(world, of_both);
  return std::make_unique<Turns>(std::move(first), make(world, of_both));
}

}  // namespace tandem::ops
