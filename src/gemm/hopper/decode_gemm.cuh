#pragma once
/// The GEMM of few rows on Hopper: as fast as B comes from memory. Each block takes 64 columns of C and all of its
/// rows, so that B is read once, and computes their product transposed: the rows of B fill the tensor cores' 64. Of
/// more rows A's way from the L2 cache would count: there a block takes 128 columns, and half of the depth.
///
/// Before the kernel may read what the ones before it write, it has the first megabytes of B brought to the L2 cache;
/// where programmatic dependent launch lets it begin early, that costs no time.

#define CUTLASS_ENABLE_GDC_FOR_SM90 1
#include <cutlass/gemm/collective/collective_builder.hpp>

#include "gemm/hopper/kernel_launch.cuh"
#include "gemm/hopper/transposed_store.cuh"

namespace tandem::cuda {

/// Element: of A, B and C. Rows: of A at most. The blocks of a cluster each load a part of A's rows for all of them.
template <class Element, int Rows, int Blocks>
class DecodeGemm {
  static constexpr int kCluster = Blocks;
  static constexpr int kGroups = Rows <= kFewRowsBlock ? 1 : 2;
  static constexpr int kSlices = kGroups == 1 ? 1 : kFewRowsSlices;
  static constexpr int kCols = kFewRowsColumns * kGroups;
  // Of few rows half as many steps, each with 256 bytes of B's rows, keep the memory busier; of 64 it is the same, and
  // of more too few steps fit.
  static constexpr int kDepth = Rows <= 32 ? 128 : 64;
  static constexpr int kAlignment = 16 / static_cast<int>(sizeof(Element));
  using Tile = cute::Shape<cute::Int<kCols>, cute::Int<Rows>, cute::Int<kDepth>>;
  using Cluster = cute::Shape<cute::Int<kCluster>, cute::_1, cute::_1>;

  using Store = TransposedStore<Element, Rows, kGroups, kSlices>;
  using Schedule = std::conditional_t<kGroups == 1, cutlass::gemm::KernelTmaWarpSpecialized,
                                      cutlass::gemm::KernelTmaWarpSpecializedCooperative>;
  static constexpr int kReserved = static_cast<int>(sizeof(typename Store::Storage)) + 2048;  // barriers besides
  using PlainMainloop = typename cutlass::gemm::collective::CollectiveBuilder<
      cutlass::arch::Sm90, cutlass::arch::OpClassTensorOp, Element, cutlass::layout::RowMajor, kAlignment, Element,
      cutlass::layout::ColumnMajor, kAlignment, float, Tile, Cluster,
      cutlass::gemm::collective::StageCountAutoCarveout<kReserved>, Schedule>::CollectiveOp;
  using Mainloop = GatedMainloop<PlainMainloop>;
  using Kernel = HookedKernel<Mainloop, Store>;

 public:
  static constexpr DecodeKernel description(DType type) { return {type, Rows, launch, load_gemm_kernel<Kernel>}; }

 private:
  static void launch(const GemmLaunch& launch) {
    const Gemm& gemm = *launch.gemm;
    Gemm transposed;
    transposed.m = gemm.n;
    transposed.n = gemm.m;
    transposed.tile_m = kCols;
    transposed.tile_n = Rows;
    typename Kernel::Params params{};
    params.table = make_tile_table(transposed, kCluster);
    params.table.columns *= kSlices;
    params.table.units *= kSlices;
    if (params.table.units == 0) return;
    params.m = static_cast<int>(gemm.n);
    params.n = static_cast<int>(gemm.m);
    params.k = static_cast<int>(gemm.k);
    typename PlainMainloop::Arguments arguments{};
    arguments.ptr_A = static_cast<const Element*>(gemm.b);
    arguments.ptr_B = static_cast<const Element*>(gemm.a);
    arguments.dA = {gemm.k, cute::_1{}, 0};
    arguments.dB = {gemm.k, cute::_1{}, 0};
    params.mainloop.gathered =
        PlainMainloop::to_underlying_arguments(cute::make_shape(params.m, params.n, params.k), arguments, nullptr);
    params.mainloop.ahead = tensor_map(gemm.b, gemm.type, gemm.n, gemm.k, kCols, kDepth);
    params.mainloop.boxes_ahead = kBoxesAhead;
    params.store = Store::params(gemm, *launch.context);
    params.record = launch.record;
    launch_gemm_kernel<Kernel>(launch, params, kCluster);
  }

  // 192 KB in all: of 132 blocks together half of H200's L2.
  static constexpr int kBoxesAhead = 1536 / kDepth / kGroups;
};

}  // namespace tandem::cuda
