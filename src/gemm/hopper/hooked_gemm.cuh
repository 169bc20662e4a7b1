#pragma once
/// The GEMM with hooks on Hopper: a CUTLASS mainloop (TMA, WGMMA) in a persistent kernel. The kernel passes gates,
/// follows the tile order, and stores and signals tile by tile.

// The kernel waits for its predecessor and lets its successor start, as programmatic dependent launch requires.
#define CUTLASS_ENABLE_GDC_FOR_SM90 1
#include <cutlass/gemm/collective/collective_builder.hpp>

#include "gemm/hopper/kernel_launch.cuh"
#include "gemm/hopper/tile_store.cuh"

namespace tandem::cuda {

/// Element is the type of A and B, Out the type of C. Gated: for the gated activations. Two blocks of a cluster share a
/// tile column: each loads half of B's rows for both.
template <class Element, class Out, int TileM, int TileN, int TileK, BLayout Layout = BLayout::kNxK, bool Gated = false>
class HookedGemm {
  static constexpr bool kScaled = sizeof(Element) == 1;
  static constexpr int kCluster = 2;
  static constexpr int kAlignment = 16 / static_cast<int>(sizeof(Element));  // of TMA: 16 bytes
  using Tile = cute::Shape<cute::Int<TileM>, cute::Int<TileN>, cute::Int<TileK>>;
  using Cluster = cute::Shape<cute::Int<kCluster>, cute::_1, cute::_1>;
  using RowMajor = cutlass::layout::RowMajor;
  using LayoutB = std::conditional_t<Layout == BLayout::kNxK, cutlass::layout::ColumnMajor, RowMajor>;

  using Store = TileStore<Out, TileM, TileN, kScaled, Gated>;
  static constexpr int kReserved = static_cast<int>(sizeof(typename Store::Storage)) + 1024;  // with barriers
  using PlainMainloop = typename cutlass::gemm::collective::CollectiveBuilder<
      cutlass::arch::Sm90, cutlass::arch::OpClassTensorOp, Element, RowMajor, kAlignment, Element, LayoutB, kAlignment,
      float, Tile, Cluster, cutlass::gemm::collective::StageCountAutoCarveout<kReserved>,
      cutlass::gemm::KernelTmaWarpSpecializedCooperative>::CollectiveOp;
  using Mainloop = GatedMainloop<PlainMainloop>;
  using Kernel = HookedKernel<Mainloop, Store>;

 public:
  static constexpr GemmKernel description(DType type, DType out_type) {
    return {type, out_type, TileM, TileN, Layout, launch, load_gemm_kernel<Kernel>, Gated};
  }

 private:
  static void launch(const GemmLaunch& launch) {
    const Gemm& gemm = *launch.gemm;
    typename Kernel::Params params{};
    static_cast<TileTable&>(params.table) = make_tile_table(gemm, kCluster);
    if (params.table.units == 0) return;
    if constexpr (Store::Table::kShares)
      params.table.shared = shared_depth(gemm, params.table.units, max(launch.sms / kCluster, 1));
    params.m = narrow(gemm.m);
    params.n = narrow(gemm.n);
    params.k = narrow(gemm.k);
    params.mainloop = mainloop(gemm, *launch.context);
    params.store = Store::params(gemm, params.table, *launch.context);
    params.record = launch.record;
    launch_gemm_kernel<Kernel>(launch, params, kCluster);
  }

  static SharedDepth shared_depth(const Gemm& gemm, int units, int clusters) {
    const int depth = narrow(ceil_div(gemm.k, TileK));
    if (gemm.workspace.sums == nullptr) return share_nothing(units, depth);
    return share_depth(units, depth, clusters, SharingCost::of(TileN));
  }

  static int narrow(Size value) { return static_cast<int>(value); }

  static typename PlainMainloop::Params source(const Gemm& gemm, const void* a, Size rows) {
    const auto shape = cute::make_shape(narrow(rows), narrow(gemm.n), narrow(gemm.k));
    typename PlainMainloop::Arguments arguments{};
    arguments.ptr_A = static_cast<const Element*>(a);
    arguments.ptr_B = static_cast<const Element*>(gemm.b);
    arguments.dA = {gemm.k, cute::_1{}, 0};
    if constexpr (Layout == BLayout::kNxK)
      arguments.dB = {gemm.k, cute::_1{}, 0};
    else
      arguments.dB = {cute::_1{}, gemm.n, 0};
    return PlainMainloop::to_underlying_arguments(shape, arguments, nullptr);
  }

  static typename Mainloop::Params mainloop(const Gemm& gemm, const Context& context) {
    typename Mainloop::Params params{};
    params.gate.gate = gemm.gate;
    params.gate.context = context;
    params.gathered = source(gemm, gemm.a != nullptr ? gemm.a : gemm.own_a, gemm.m);
    const Range own = gemm.own_a != nullptr ? gemm.rows.shard(gemm.me) : Range{};
    if (!own.empty()) {
      params.gate.own = gemm.me;
      params.gate.own_begin = narrow(own.begin);
      params.own = source(gemm, gemm.own_a, own.size());
    }
    return params;
  }
};

}  // namespace tandem::cuda
