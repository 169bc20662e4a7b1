#pragma once
/// The memory that trials of expert products with the same choices share, and their weights.

#include <algorithm>
#include <vector>

#include "operators/reference/expert_gemm_example.h"

namespace tandem::ops {

/// T: the type of tokens' rows. W: that of weights and of rows before both products. Scales are null without fp8.
template <class T, class W>
class ExpertGemmMemory {
 public:
  ExpertGemmMemory(World& world, const ExpertGemmPlan& plan)
      : o_(plan.options()),
        first_expert_(first_expert(o_.experts, world.num_pes(), world.pe())),
        pe_(world.pe()),
        here_(experts_of_pe(o_.experts, world.num_pes())) {
    SymmetricHeap& heap = world.heap();
    const Size all_rows = plan.experts().rows(), hidden = o_.experts.hidden;
    const auto scales = [&](Size count, const char* what) {
      return sizeof(W) == 1 ? heap.allocate_local<float>(count, what) : nullptr;
    };
    routing = heap.allocate_local<Index>(plan.experts().routing_bytes() / 4, "routing");
    first_weights = heap.allocate_local<W>(here_ * columns() * hidden, "first weights");
    second_weights = heap.allocate_local<W>(here_ * hidden * o_.intermediate, "second weights");
    rows = heap.allocate_local<W>(all_rows * hidden, "rows");
    y = heap.allocate_local<T>(all_rows * hidden, "y");
    first_scales = scales(here_ * first_blocks() * scale_blocks(hidden), "first scales");
    second_scales = scales(here_ * scale_blocks(hidden) * scale_blocks(o_.intermediate), "second scales");
    row_scales = scales(all_rows * scale_blocks(hidden), "row scales");
  }

  /// Writes the matrices of the experts here, and their scales.
  void fill(World& world, const ExpertWeights& weights) const {
    const Size hidden = o_.experts.hidden;
    if (first_scales != nullptr) {
      fill_scales(world, weights, first_scales, first_blocks(), scale_blocks(hidden));
      fill_scales(world, weights, second_scales, scale_blocks(hidden), scale_blocks(o_.intermediate));
    }
    std::vector<W> first(static_cast<std::size_t>(columns() * hidden));
    std::vector<W> second(static_cast<std::size_t>(hidden * o_.intermediate));
    for (int e = 0; e < here_; ++e) {
      const int expert = weights.part(first_expert_ + e, pe_);
      std::fill(first.begin(), first.end(), convert<W>(0.0F));
      std::fill(second.begin(), second.end(), convert<W>(0.0F));
      for (Size j = 0; j < o_.intermediate; ++j)
        for (const bool is_up : {false, true})
          if (!is_up || is_gated(o_.activation))
            set(first.data() + weights.row_of(j, is_up) * hidden, weights.first(expert, j, is_up));
      for (Size i = 0; i < hidden; ++i) set(second.data() + i * o_.intermediate, weights.second(expert, i));
      put(world, first_weights + e * columns() * hidden, first);
      put(world, second_weights + e * hidden * o_.intermediate, second);
    }
  }

  Index* routing;
  W* first_weights;
  W* second_weights;
  W* rows;
  T* y;
  float* first_scales;
  float* second_scales;
  float* row_scales;
  const void* owner = nullptr;  ///< the trial that dispatched rows last

 private:
  Size columns() const { return o_.intermediate * (is_gated(o_.activation) ? 2 : 1); }
  Size first_blocks() const { return GemmScales::blocks_of_columns(columns(), is_gated(o_.activation)); }

  static void set(W* row, const SparseRow& sparse) {
    row[sparse.first] = convert<W>(sparse.sign);
    row[sparse.second] = convert<W>(convert<float>(row[sparse.second]) + 2);
  }
  template <class Element>
  static void put(World& world, Element* memory, const std::vector<Element>& values) {
    world.copy_in(memory, values.data(), static_cast<Size>(values.size() * sizeof(Element)));
  }
  /// The scales of a matrix of each expert.
  void fill_scales(World& world, const ExpertWeights& weights, float* memory, Size blocks, Size steps) const {
    std::vector<float> all;
    for (int e = 0; e < here_; ++e)
      for (Size block = 0; block < blocks; ++block)
        for (Size step = 0; step < steps; ++step)
          all.push_back(weights.scale(weights.part(first_expert_ + e, pe_), block, step));
    put(world, memory, all);
  }

  const ExpertGemmOptions o_;
  int first_expert_;
  int pe_;
  int here_;
};

}  // namespace tandem::ops
