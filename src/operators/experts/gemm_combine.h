#pragma once
/// The second product of a layer with experts, beside or before the combination of its rows.

#include <optional>
#include <vector>

#include "collectives/experts/combine.h"
#include "operators/experts/grouped_product.h"

namespace tandem::ops {

class GemmCombine {
 public:
  /// `options` are complete. `experts` outlives it.
  GemmCombine(World& world, const ExpertGemmOptions& options, ExpertPlan& experts);

  void enqueue(Stream& main, const GemmCombineCall& call, const kernels::Routing& routing);

 private:
  /// Sums of a chunk of columns on their way.
  struct Sums {
    Grid grid;
    kernels::RowChunks rows;
  };
  Sums sums_of(World& world, int sms, Size columns) const;
  void enqueue_overlapped(Stream& main, const GemmCombineCall& call, const kernels::Routing& routing);
  void combine(Stream& stream, const GemmCombineCall& call, const kernels::Routing& routing, const Sums& sums,
               Range columns) const;
  template <class T>
  void combine_as(Stream& stream, const GemmCombineCall& call, const kernels::Routing& routing, const Sums& sums,
                  Range columns) const;
  Range columns_of(int chunk) const;

  ExpertGemmOptions options_;
  ExpertPlan& experts_;
  Team team_;
  int sms_;
  GroupedProduct product_;
  // The overlapped form.
  PanelOrder order_;
  Sums beside_;  // the GEMM
  Sums last_;    // behind it
  const std::byte* zeros_ = nullptr;
  Signals tiles_;
  Epoch* expected_ = nullptr;
  std::optional<Stream> sums_;
};

}  // namespace tandem::ops
