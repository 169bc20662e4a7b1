#pragma once
/// The grouped GEMM on Hopper: the kernel of a fused GEMM, whose tiles come from a table in device memory.

#include "gemm/hopper/plain_mainloop.cuh"

#include "gemm/hopper/groups/scaled_mainloop.cuh"
#include "gemm/hopper/kernel_launch.cuh"
#include "gemm/hopper/tile_store.cuh"

namespace tandem::cuda {

/// Element is the type of A and B, Out that of C. Gated: for the gated activations. fp8 factors have scales, and an fp8
/// C has a scale for each of its blocks.
template <class Element, int TileM, int TileN, bool Gated = false, class Out = Element>
class GroupedGemm {
  static constexpr bool kScaled = sizeof(Element) == 1;
  static constexpr bool kQuantised = sizeof(Out) == 1;
  static constexpr int kCluster = 2;
  static constexpr int kDepth = 128 / static_cast<int>(sizeof(Element));  // a row of a box takes 128 bytes
  using Tile = cute::Shape<cute::Int<TileM>, cute::Int<TileN>, cute::Int<kDepth>>;
  using Cluster = cute::Shape<cute::Int<kCluster>, cute::_1, cute::_1>;
  using Store = TileStore<Out, TileM, TileN, kScaled, Gated, true, kQuantised>;
  static constexpr int kReserved = static_cast<int>(sizeof(typename Store::Storage)) + 64;  // with counts of records
  using Plain = PlainMainloop<Element, BLayout::kNxK, Tile, Cluster, kReserved>;
  using Mainloop =
      std::conditional_t<kScaled, ScaledMainloop<typename Plain::Type, Gated>, GroupedMainloop<typename Plain::Type>>;
  using Kernel = FusedKernel<Mainloop, Store>;

 public:
  static constexpr GemmKernel description(DType type, DType out_type) {
    return {type, out_type, TileM, TileN, BLayout::kNxK, launch, load_gemm_kernel<Kernel>, true, Gated, kQuantised};
  }

 private:
  static void launch(const GemmLaunch& launch) {
    const Gemm& gemm = *launch.gemm;
    typename Kernel::Params params{};
    params.table = make_panel_table(gemm, kCluster);
    if (params.table.units == 0) return;
    params.m = static_cast<int>(gemm.m);
    params.n = static_cast<int>(gemm.n);
    params.k = static_cast<int>(gemm.k);
    params.mainloop = mainloop(gemm, *launch.context);
    params.store = Store::params(gemm, params.table, *launch.context);
    if (gemm.scales.blocks) params.store.scales.a = params.store.scales.b = nullptr;  // the mainloop applies them
    params.record = launch.record;
    launch_gemm_kernel<Kernel>(launch, params, kCluster);
  }

  static typename Mainloop::Params mainloop(const Gemm& gemm, const Context& context) {
    typename Mainloop::Params params{};
    params.gate.gate = gemm.gate;
    params.gate.context = context;
    // A row's next 128 bytes are read soon. With few rows of A, longer accesses save up to 7 % of the time.
    constexpr auto kPromotion = CU_TENSOR_MAP_L2_PROMOTION_L2_256B;
    params.a = tensor_map(gemm.a, gemm.type, gemm.m, gemm.k, Mainloop::kBoxRowsOfA, kDepth, kPromotion);
    params.b =
        tensor_map(gemm.b, gemm.type, gemm.groups.count * gemm.n, gemm.k, Mainloop::kBoxRowsOfB, kDepth, kPromotion);
    params.n = static_cast<int>(gemm.n);
    params.words = gemm.groups.words;
    if constexpr (kScaled) params.scales = block_scales(gemm);
    return params;
  }
};

}  // namespace tandem::cuda
