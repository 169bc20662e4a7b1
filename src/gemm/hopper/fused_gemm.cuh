#pragma once
/// The fused GEMM on Hopper: a CUTLASS mainloop (TMA, WGMMA) in a persistent kernel. The kernel passes gates,
/// follows the tile order, and stores and signals tile by tile.

#include "gemm/hopper/plain_mainloop.cuh"

#include "gemm/hopper/groups/scaled_mainloop.cuh"
#include "gemm/hopper/kernel_launch.cuh"
#include "gemm/hopper/tile_store.cuh"

namespace tandem::cuda {

/// Element is the type of A and B, Out the type of C. Gated: for the gated activations. Two blocks of a cluster share a
/// tile column: each loads half of B's rows for both. Blocks: for fp8 with scales of blocks, and with all others. Fast:
/// the tensor cores add the whole depth of fp8 products (Gemm::fast_accumulation).
template <class Element, class Out, int TileM, int TileN, int TileK, BLayout Layout = BLayout::kNxK, bool Gated = false,
          bool Blocks = false, bool Fast = false>
class FusedGemm {
  static constexpr bool kScaled = sizeof(Element) == 1;
  static constexpr int kCluster = 2;
  static_assert(!Fast || (kScaled && !Blocks));
  using Tile = cute::Shape<cute::Int<TileM>, cute::Int<TileN>, cute::Int<TileK>>;
  using Cluster = cute::Shape<cute::Int<kCluster>, cute::_1, cute::_1>;

  using Store = TileStore<Out, TileM, TileN, kScaled, Gated, false, false, Fast || !kScaled>;
  static constexpr int kReserved = static_cast<int>(sizeof(typename Store::Storage)) + 64;  // with counts of records
  using Schedule = std::conditional_t<Fast, cutlass::gemm::KernelTmaWarpSpecializedCooperativeFP8FastAccum,
                                      cutlass::gemm::KernelTmaWarpSpecializedCooperative>;
  using Plain = PlainMainloop<Element, Layout, Tile, Cluster, kReserved, Schedule>;
  using Fused = GatedMainloop<typename Plain::Type>;
  using Mainloop = std::conditional_t<Blocks, ScaledMainloop<typename Plain::Type, Gated, Fused>, Fused>;
  using Kernel = FusedKernel<Mainloop, Store>;

 public:
  static constexpr GemmKernel description(DType type, DType out_type) {
    return {type, out_type, TileM, TileN, Layout, launch, load_gemm_kernel<Kernel>, false, Gated, false, Blocks, Fast};
  }

 private:
  static void launch(const GemmLaunch& launch) {
    const Gemm& gemm = *launch.gemm;
    typename Kernel::Params params{};
    static_cast<TileTable&>(params.table) = make_tile_table(gemm, kCluster);
    if (params.table.units == 0) return;
    if constexpr (Store::Table::kIsStreamK)
      params.table.stream_k = stream_k(gemm, params.table.units, max(launch.sms / kCluster, 1));
    params.m = narrow(gemm.m);
    params.n = narrow(gemm.n);
    params.k = narrow(gemm.k);
    params.mainloop = mainloop(gemm, *launch.context);
    params.store = Store::params(gemm, params.table, *launch.context);
    if (Blocks && gemm.scales.blocks)
      params.store.scales.a = params.store.scales.b = nullptr;  // the mainloop applies them
    params.record = launch.record;
    launch_gemm_kernel<Kernel>(launch, params, kCluster);
  }

  static StreamK stream_k(const Gemm& gemm, int units, int clusters) {
    const int depth = narrow(ceil_div(gemm.k, TileK));
    if (gemm.workspace.sums == nullptr) return split_nothing(units, depth);
    return split_last_wave(units, depth, clusters, StreamKCost::of(TileN));
  }

  static int narrow(Size value) { return static_cast<int>(value); }

  static typename Mainloop::Params mainloop(const Gemm& gemm, const Context& context) {
    typename Mainloop::Params params{};
    params.gate.gate = gemm.gate;
    params.gate.context = context;
    params.gathered = Plain::params(gemm, gemm.a != nullptr ? gemm.a : gemm.own_a, gemm.m);
    const Range own = gemm.own_a != nullptr ? gemm.rows.shard(gemm.me) : Range{};
    if (!own.empty()) {
      params.gate.own = gemm.me;
      params.gate.own_begin = narrow(own.begin);
      params.own = Plain::params(gemm, gemm.own_a, own.size());
    }
    if constexpr (Blocks) {
      const GemmScales& scales = gemm.scales;
      params.scales.a = scales.a;
      params.scales.b = scales.blocks ? scales.b : nullptr;
      params.scales.steps = narrow(scale_blocks(gemm.k));
      params.scales.rows = narrow(gemm.m);
      params.scales.blocks_of_n = narrow(GemmScales::blocks_of_columns(gemm.n, Gated));
    }
    return params;
  }
};

}  // namespace tandem::cuda
