#pragma once
/// One of the two products of a layer with experts, of some neighbouring experts.

#include <memory>

#include "collectives/experts/routing.h"
#include "tandem/layer/expert_gemms.h"
#include "tandem/layer/group_panels.h"

namespace tandem::ops {

/// The sizes of a product.
struct ProductShape {
  Size rows = 0;  // of all experts here
  Size n = 0;     // columns of the product, before a gated activation
  Size k = 0;
  Activation activation = Activation::kNone;
};

/// The experts [first, first + count) of this PE.
class GroupedProduct {
 public:
  /// `groups_of_word`: with a gate, the experts that share a word; else 0.
  GroupedProduct(World& world, const ExpertGemmOptions& options, const ProductShape& shape, int first, int count,
                 int groups_of_word = 0);

  /// Enqueues the table of panels.
  void make_panels(Stream& stream, const kernels::Routing& routing) const;
  /// Returns the GEMM on all SMs. `b` has the matrices of all experts here.
  Gemm gemm(const void* a, const void* b, void* c) const;

 private:
  ExpertGemmOptions options_;
  ProductShape shape_;
  Team team_;
  int first_;
  std::unique_ptr<GroupPanels> panels_;
};

}  // namespace tandem::ops
