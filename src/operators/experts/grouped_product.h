#pragma once
/// One of the two products of a layer with experts, of some neighbouring experts.

#include <memory>

#include "collectives/experts/routing.h"
#include "tandem/layer/expert_gemms.h"
#include "tandem/layer/group_panels.h"

namespace tandem::ops {

/// Returns whether rows and weights are fp8_e4m3 with scales of blocks.
inline bool is_fp8(const ExpertGemmOptions& options) { return options.experts.wire != ExpertWire::kType; }
/// Returns the type of rows and weights of both products.
inline DType product_type(const ExpertGemmOptions& options) {
  return is_fp8(options) ? DType::kE4M3 : options.experts.type;
}

/// The buffers of a product, which has the matrices of all experts here. The scales are null except for fp8.
struct ProductBuffers {
  const void* a;
  const void* b;
  void* c;
  const float* a_scales;
  const float* b_scales;
  float* c_scales;  ///< of an fp8 C
};

/// The sizes of a product.
struct ProductShape {
  Size rows = 0;  // of all experts here
  Size n = 0;     // columns of the product, before a gated activation
  Size k = 0;
  Activation activation = Activation::kNone;
  DType out_type = DType::kBF16;
};

/// Returns the columns of a product's tiles. An fp8 result has whole blocks in a tile. The tensor cores compute 192
/// columns of fp8 factors at once. Tiles of 256 have two batches, which are slower: only gates need them.
inline int tile_columns(const ExpertGemmOptions& options, Activation activation, DType out_type) {
  constexpr int kWide = 256, kAtOnce = 192;
  if (size_of(out_type) == 1)
    return static_cast<int>(round_up(options.tile_n, kScaleBlock * (is_gated(activation) ? 2 : 1)));
  return is_fp8(options) && !is_gated(activation) && options.tile_n == kWide ? kAtOnce : options.tile_n;
}
/// Returns the columns of the second product's tiles.
inline int tile_columns_to_tokens(const ExpertGemmOptions& options) {
  return tile_columns(options, Activation::kNone, options.experts.type);
}

/// The experts [first, first + count) of this PE.
class GroupedProduct {
 public:
  /// `groups_of_word`: with a gate, the experts that share a word; else 0.
  GroupedProduct(World& world, const ExpertGemmOptions& options, const ProductShape& shape, int first, int count,
                 int groups_of_word = 0);

  /// Enqueues the table of panels.
  void make_panels(Stream& stream, const kernels::Routing& routing) const;
  /// Returns the GEMM on all SMs.
  Gemm gemm(const ProductBuffers& buffers) const;

 private:
  ExpertGemmOptions options_;
  ProductShape shape_;
  Team team_;
  int first_;
  std::unique_ptr<GroupPanels> panels_;
};

}  // namespace tandem::ops
