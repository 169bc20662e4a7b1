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

Gemm GroupedProduct::gemm(const void* a, const void* b, void* c) const {
  Gemm gemm;
  gemm.m = shape_.rows;
  gemm.n = shape_.n;
  gemm.k = shape_.k;
  gemm.type = gemm.out_type = options_.experts.type;
  gemm.tile_m = options_.tile_m;
  gemm.tile_n = options_.tile_n;
  gemm.activation = shape_.activation;
  gemm.me = team_.me;
  gemm.node_size = team_.node_size;
  gemm.a = a;
  gemm.b = static_cast<const std::byte*>(b) + first_ * shape_.n * shape_.k * size_of(gemm.type);
  gemm.destination = GemmLocal{c};
  gemm.groups = panels_->groups();
  return gemm;
}

}  // namespace tandem::ops
