#pragma once
/// The grouped GEMM on Hopper: the kernel with hooks, whose tiles come from a table in device memory.

#include "gemm/hopper/plain_mainloop.cuh"

#include "gemm/hopper/grouped_mainloop.cuh"
#include "gemm/hopper/kernel_launch.cuh"
#include "gemm/hopper/tile_store.cuh"

namespace tandem::cuda {

/// Element is the type of A, B and C, 16 bits. Gathers: rows of A have an index.
///
/// The blocks of a cluster share a panel's rows of A instead of a column of B, since many groups have few panels.
template <class Element, int TileM, int TileN, int TileK, bool Gathers>
class GroupedGemm {
  static constexpr int kCluster = 2;
  using Tile = cute::Shape<cute::Int<TileM>, cute::Int<TileN>, cute::Int<TileK>>;
  using Cluster = cute::Shape<cute::_1, cute::Int<kCluster>, cute::_1>;
  using Store = TileStore<Element, TileM, TileN, false, false, true>;
  static constexpr int kReserved = static_cast<int>(sizeof(typename Store::Storage)) + 1024;  // with barriers
  using Plain = PlainMainloop<Element, BLayout::kNxK, Tile, Cluster, kReserved>;
  using Mainloop = GroupedMainloop<typename Plain::Type, Gathers>;
  using Kernel = HookedKernel<Mainloop, Store>;

 public:
  static constexpr GemmKernel description(DType type) {
    return {type,
            type,
            TileM,
            TileN,
            BLayout::kNxK,
            launch,
            load_gemm_kernel<Kernel>,
            Gathers ? GemmRows::kIndexed : GemmRows::kOfPanels};
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
    params.record = launch.record;
    launch_gemm_kernel<Kernel>(launch, params, kCluster);
  }

  static typename Mainloop::Params mainloop(const Gemm& gemm, const Context& context) {
    typename Mainloop::Params params{};
    params.gate.gate = gemm.gate;
    params.gate.context = context;
    const Size rows = Gathers ? gemm.groups.rows_of_a : gemm.m;
    params.gathered = Plain::params(gemm, gemm.a, rows, 1);
    params.gathered.tma_load_b = Plain::params(gemm, gemm.a, rows, gemm.groups.count).tma_load_b;
    params.words = gemm.groups.words;
    params.a_rows = gemm.groups.a_rows;
    params.m = static_cast<int>(gemm.m);
    if constexpr (Gathers) params.row = tensor_map(gemm.a, gemm.type, rows, gemm.k, 1, TileK);
    return params;
  }
};

}  // namespace tandem::cuda
