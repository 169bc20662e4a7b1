#include "operators/experts/grouped_product.h"

#include <algorithm>

namespace tandem::ops {

GroupedProduct::GroupedProduct(World& world, const ExpertGemmOptions& options, const ProductShape& shape, int first,
                               int count, int groups_of_word)
    : options_(options), shape_(shape), team_(world.team()), first_(first) {
  GroupPanelOptions panels;
  panels.groups = count;
  panels.tile_m = options.tile_m;
  panels.most_panels = static_cast<int>(ceil_div(shape.rows, options.tile_m));
  panels.words = groups_of_word > 0 ? 1 : 0;
  panels.groups_of_word = std::max(1, groups_of_word);
  panels_ = make_group_panels(world, panels);
}

void GroupedProduct::make_panels(Stream& stream, const kernels::Routing& routing) const {
  panels_->make(stream, routing.counts() + first_, routing.starts() + first_);
}

Gemm GroupedProduct::gemm(const ProductBuffers& buffers) const {
  Gemm gemm;
  gemm.m = shape_.rows;
  gemm.n = shape_.n;
  gemm.k = shape_.k;
  gemm.type = product_type(options_);
  gemm.out_type = shape_.out_type;
  gemm.tile_m = options_.tile_m;
  gemm.tile_n = tile_columns(options_, shape_.activation, shape_.out_type);
  gemm.activation = shape_.activation;
  gemm.me = team_.me;
  gemm.node_size = team_.node_size;
  gemm.a = buffers.a;
  gemm.b = static_cast<const std::byte*>(buffers.b) + first_ * shape_.n * shape_.k * size_of(gemm.type);
  gemm.destination = GemmLocal{buffers.c};
  gemm.groups = panels_->groups();
  if (!is_fp8(options_)) return gemm;
  const Size of_matrix = GemmScales::blocks_of_columns(shape_.n, is_gated(shape_.activation)) * scale_blocks(shape_.k);
  gemm.scales.blocks = true;
  gemm.scales.a = buffers.a_scales;
  gemm.scales.b = buffers.b_scales + first_ * of_matrix;
  gemm.scales.out = buffers.c_scales;
  return gemm;
}

}  // namespace tandem::ops
