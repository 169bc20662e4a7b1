#pragma once
/// The grouped GEMM for few rows in each group, limited by the time to read B. A block takes 128 columns of B for up to
/// 64 rows of 16 bits, or 32 rows of fp8. Each B is read once if its group has no more rows. Blocks do not form
/// clusters. The tiles of many groups fill all SMs evenly, and while a tile leaves, the next one's B is on its way.

#include "gemm/hopper/plain_mainloop.cuh"

#include "gemm/hopper/groups/few_rows_quantised.cuh"
#include "gemm/hopper/groups/few_rows_scaled.cuh"
#include "gemm/hopper/groups/few_rows_store.cuh"
#include "gemm/hopper/kernel_launch.cuh"

namespace tandem::cuda {

/// Element is the type of A and B, Out that of C. It serves all activations. An fp8 C has a gated activation and a
/// scale for each of its blocks. Its tiles have 256 columns of B, for 128 columns of C.
template <class Element, class Out = Element>
class FewRowsGroups {
  static constexpr bool kScaled = sizeof(Element) == 1;
  static constexpr bool kQuantised = sizeof(Out) == 1;
  // The threads add the products of fp8 themselves: for 64 rows that would take longer than reading B.
  static constexpr int kRows = kScaled ? 32 : 64;
  using Store = std::conditional_t<kQuantised, FewRowsQuantised, FewRowsStore<Out, kRows, kScaled>>;
  static constexpr int kCols = Store::kColumns;
  // A step has 32 KB of B. 256 bytes of B's rows are read together, which keeps the memory busier than 128 bytes.
  static constexpr int kDepth = 32 * 1024 / kCols / static_cast<int>(sizeof(Element));
  static constexpr int kReserved = static_cast<int>(sizeof(typename Store::Storage)) + 1024;  // with barriers
  // B as its first factor, A as its second one.
  using Plain =
      PlainMainloop<Element, BLayout::kNxK, cute::Shape<cute::Int<kCols>, cute::Int<kRows>, cute::Int<kDepth>>,
                    cute::Shape<cute::_1, cute::_1, cute::_1>, kReserved>;
  using Mainloop =
      std::conditional_t<kScaled, FewRowsScaledMainloop<typename Plain::Type>, FewRowsMainloop<typename Plain::Type>>;
  using Kernel = FusedKernel<Mainloop, Store>;

 public:
  static constexpr GemmKernel description(DType type, DType out_type, bool gated) {
    return {type, out_type, kRows, kCols, BLayout::kNxK, launch, load_gemm_kernel<Kernel>, true, gated, kQuantised};
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
    params.mainloop = mainloop(gemm, *launch.context);
    params.store = Store::params(gemm, params.table, *launch.context);
    if (gemm.scales.blocks) params.store.scales.a = params.store.scales.b = nullptr;  // the mainloop applies them
    params.record = launch.record;
    launch_gemm_kernel<Kernel>(launch, params, 1);
  }

  static typename Mainloop::Params mainloop(const Gemm& gemm, const Context& context) {
    typename Mainloop::Params params{};
    params.gate.gate = gemm.gate;
    params.gate.context = context;
    params.n = static_cast<int>(gemm.n);
    params.words = gemm.groups.words;
    constexpr auto kPromotion = CU_TENSOR_MAP_L2_PROMOTION_L2_256B;
    params.b =
        tensor_map(gemm.b, gemm.type, gemm.groups.count * gemm.n, gemm.k, kCols, Mainloop::kBoxDepth, kPromotion);
    for (int i = 0; i < Mainloop::kBoxSizes; ++i)
      params.rows_of_a[i] =
          tensor_map(gemm.a, gemm.type, gemm.m, gemm.k, Mainloop::kLeastRows << i, Mainloop::kBoxDepth, kPromotion);
    if constexpr (kScaled) {
      params.scales = block_scales(gemm);
      params.gated = is_gated(gemm.activation);
    }
    return params;
  }
};

}  // namespace tandem::cuda
