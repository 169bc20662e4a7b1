#pragma once
/// CUTLASS's mainloop for row-major matrices: TMA loads, WGMMA computes.

// The kernel waits for its predecessor and lets its successor start, as programmatic dependent launch requires.
#define CUTLASS_ENABLE_GDC_FOR_SM90 1
#include <cutlass/gemm/collective/collective_builder.hpp>

#include "tandem/advanced/gemm.h"

namespace tandem::cuda {

/// `Reserved` bytes of shared memory are not the mainloop's.
template <class Element, BLayout Layout, class Tile, class Cluster, int Reserved,
          class Schedule = cutlass::gemm::KernelTmaWarpSpecializedCooperative>
struct PlainMainloop {
  static constexpr int kAlignment = 16 / static_cast<int>(sizeof(Element));  // of TMA: 16 bytes
  using RowMajor = cutlass::layout::RowMajor;
  using LayoutB = std::conditional_t<Layout == BLayout::kNxK, cutlass::layout::ColumnMajor, RowMajor>;
  using Type = typename cutlass::gemm::collective::CollectiveBuilder<
      cutlass::arch::Sm90, cutlass::arch::OpClassTensorOp, Element, RowMajor, kAlignment, Element, LayoutB, kAlignment,
      float, Tile, Cluster, cutlass::gemm::collective::StageCountAutoCarveout<Reserved>, Schedule>::CollectiveOp;

  /// Returns its parameters for A of `rows` x k.
  static typename Type::Params params(const Gemm& gemm, const void* a, Size rows) {
    const auto narrow = [](Size value) { return static_cast<int>(value); };
    const auto shape = cute::make_shape(narrow(rows), narrow(gemm.n), narrow(gemm.k));
    typename Type::Arguments arguments{};
    arguments.ptr_A = static_cast<const Element*>(a);
    arguments.ptr_B = static_cast<const Element*>(gemm.b);
    arguments.dA = {gemm.k, cute::_1{}, 0};
    if constexpr (Layout == BLayout::kNxK)
      arguments.dB = {gemm.k, cute::_1{}, 0};
    else
      arguments.dB = {cute::_1{}, gemm.n, 0};
    return Type::to_underlying_arguments(shape, arguments, nullptr);
  }
};

}  // namespace tandem::cuda
