#pragma once
/// The grouped GEMM for few rows in each group, limited by the time to read B. A block takes 128 columns of C for up to
/// 32 rows, and each B is read once if its group has no more rows. Blocks do not form clusters. The tiles of many
/// groups fill all SMs evenly, and while a tile leaves, the next one's B is on its way.

#include "gemm/hopper/plain_mainloop.cuh"

#include "gemm/hopper/groups/few_rows_mainloop.cuh"
#include "gemm/hopper/groups/few_rows_store.cuh"
#include "gemm/hopper/kernel_launch.cuh"

namespace tandem::cuda {

/// Element is the type of A, B and C. It serves all activations.
template <class Element>
class FewRowsGroups {
  static constexpr int kCols = 128;
  static constexpr int kRows = 32;
  // 256 bytes of B's rows are read together, which keeps the memory busier than 128 bytes.
  static constexpr int kDepth = 128;
  using Store = FewRowsStore<Element, kRows>;
  static constexpr int kReserved = static_cast<int>(sizeof(typename Store::Storage)) + 1024;  // with barriers
  // B as its first factor, A as its second one.
  using Plain =
      PlainMainloop<Element, BLayout::kNxK, cute::Shape<cute::Int<kCols>, cute::Int<kRows>, cute::Int<kDepth>>,
                    cute::Shape<cute::_1, cute::_1, cute::_1>, kReserved>;
  using Mainloop = FewRowsMainloop<typename Plain::Type>;
  using Kernel = FusedKernel<Mainloop, Store>;

 public:
  static constexpr GemmKernel description(DType type, bool gated) {
    return {type, type, kRows, kCols, BLayout::kNxK, launch, load_gemm_kernel<Kernel>, true, gated};
  }

 private:
  static void launch(const GemmLaunch& launch) {
    const Gemm& gemm = *launch.gemm;
    typename Kernel::Params params{};
    params.table = make_panel_table(gemm, 1);
    if (params.table.units == 0) return;
    params.m = static_cast<int>(gemm.m);
    params.n = static_cast<int>(gemm.n);
    params.k = static_cast<int>(gemm.k);
    params.mainloop.gate.gate = gemm.gate;
    params.mainloop.gate.context = *launch.context;
    params.mainloop.n = params.n;
    params.mainloop.words = gemm.groups.words;
    constexpr auto kPromotion = CU_TENSOR_MAP_L2_PROMOTION_L2_256B;
    params.mainloop.b =
        tensor_map(gemm.b, gemm.type, gemm.groups.count * gemm.n, gemm.k, kCols, Mainloop::kBoxDepth, kPromotion);
    for (int i = 0; i < Mainloop::kBoxSizes; ++i)
      params.mainloop.rows_of_a[i] =
          tensor_map(gemm.a, gemm.type, gemm.m, gemm.k, Mainloop::kLeastRows << i, Mainloop::kBoxDepth, kPromotion);
    params.store = Store::params(gemm, params.table, *launch.context);
    params.record = launch.record;
    launch_gemm_kernel<Kernel>(launch, params, 1);
  }
};

}  // namespace tandem::cuda
