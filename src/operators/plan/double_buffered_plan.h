#pragma once
/// Double buffering: two plans of the same operator that alternate, call by call.
///
/// A plan's buffers may be written again when all peers have released its last call. With one plan each call would
/// start when the slowest PE has ended the previous one. With two, a PE that is ahead by less than a call waits for
/// data only. All PEs run an operator in one order, so they agree on the plan of each call, also in graphs. Both plans
/// share one count of calls, because a graph with an odd number of calls runs the same plan twice in a row.

#include <array>
#include <memory>

#include "operators/plan/operator.h"

namespace tandem::ops {

class DoubleBufferedPlan final : public OperatorPlan {
 public:
  /// `share`: of any side, where the plans use memory that others share. The next of all these plans then has its turn.
  DoubleBufferedPlan(std::unique_ptr<OperatorPlan> first, std::unique_ptr<OperatorPlan> second,
                     std::shared_ptr<TransportShare> share = nullptr)
      : OperatorPlan(first->options()), plans_{std::move(first), std::move(second)}, share_(std::move(share)) {}

  std::string strategy(Size m) const override { return plans_.front()->strategy(m); }

 private:
  void enqueue(Stream& main, const OperatorCall& call) override {
    const std::size_t turn = share_ != nullptr ? share_->next_side() : next_;
    plans_[turn]->run(main, call);
    next_ = 1 - turn;
  }

  std::array<std::unique_ptr<OperatorPlan>, 2> plans_;
  std::shared_ptr<TransportShare> share_;
  std::size_t next_ = 0;
};

/// One plan, or two that take turns.
inline std::unique_ptr<OperatorPlan> make_double_buffered(World& world, const Settings& settings,
                                                          std::unique_ptr<OperatorPlan> (*make)(World&,
                                                                                                const Settings&)) {
  if (!settings.double_buffered) return make(world, settings);
  Settings of_both = settings;
  of_both.buffers = make_buffer_words(world);
  auto first = make(world, of_both);
  of_both.begin_share(1);
  auto second = make(world, of_both);
  return std::make_unique<DoubleBufferedPlan>(std::move(first), std::move(second), of_both.share);
}

}  // namespace tandem::ops
