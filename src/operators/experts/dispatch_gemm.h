#pragma once
/// The first product of a layer with experts, beside or behind the dispatch of its rows.

#include <optional>

#include "operators/experts/dispatch_waves.h"
#include "operators/experts/grouped_product.h"

namespace tandem::ops {

/// The experts of each PE whose product is computed while rows travel: waves of equal numbers of experts.
struct EarlyExperts {
  int waves = 0;
  int experts_of_wave = 0;
  int count() const { return waves * experts_of_wave; }
};

class DispatchGemm {
 public:
  /// `options` are complete. `experts` outlives it.
  DispatchGemm(World& world, const ExpertGemmOptions& options, ExpertPlan& experts, const EarlyExperts& early);

  void enqueue(Stream& main, const DispatchGemmCall& call, const kernels::Routing& routing);

 private:
  void set_overlapped(World& world);
  void enqueue_overlapped(Stream& main, const DispatchGemmCall& call, const kernels::Routing& routing);

  ExpertGemmOptions options_;
  ExpertPlan& experts_;
  Team team_;
  int sms_;
  EarlyExperts early_;
  std::optional<GroupedProduct> early_product_;  // with a gate
  std::optional<GroupedProduct> product_;        // of the other experts, or of all
  // The overlapped form.
  Grid grid_;
  DispatchWaves::Args waves_;
  Epochs calls_;
  std::optional<Stream> rows_;
};

}  // namespace tandem::ops
