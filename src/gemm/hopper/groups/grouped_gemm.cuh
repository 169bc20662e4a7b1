#pragma once
/// The grouped GEMM on Hopper: the kernel with hooks, whose tiles come from a table in device memory.

#include "gemm/hopper/plain_mainloop.cuh"

#include "gemm/hopper/groups/grouped_mainloop.cuh"
#include "gemm/hopper/kernel_launch.cuh"
#include "gemm/hopper/tile_store.cuh"

namespace tandem::cuda {

/// Element is the type of A, B and C, 16 bits. Gated: for the gated activations.
template <class Element, int TileM, int TileN, bool Gated = false>
class GroupedGemm {
  static constexpr int kCluster = 2;
  static constexpr int kDepth = 64;  // a row of a box takes 128 bytes
  using Tile = cute::Shape<cute::Int<TileM>, cute::Int<TileN>, cute::Int<kDepth>>;
  using Cluster = cute::Shape<cute::Int<kCluster>, cute::_1, cute::_1>;
  using Store = TileStore<Element, TileM, TileN, false, Gated, true>;
  static constexpr int kReserved = static_cast<int>(sizeof(typename Store::Storage)) + 1024;  // with barriers
  using Plain = PlainMainloop<Element, BLayout::kNxK, Tile, Cluster, kReserved>;
  using Mainloop = GroupedMainloop<typename Plain::Type>;
  using Kernel = HookedKernel<Mainloop, Store>;
  static_assert(sizeof(Element) == 2);

 public:
  static constexpr GemmKernel description(DType type) {
    return {type, type, TileM, TileN, BLayout::kNxK, launch, load_gemm_kernel<Kernel>, true, Gated};
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
    params.a = tensor_map(gemm.a, gemm.type, gemm.m, gemm.k, Mainloop::kBoxRowsOfA, kDepth);
    params.b = tensor_map(gemm.b, gemm.type, gemm.groups.count * gemm.n, gemm.k, Mainloop::kBoxRowsOfB, kDepth);
    params.n = static_cast<int>(gemm.n);
    params.words = gemm.groups.words;
    return params;
  }
};

}  // namespace tandem::cuda
