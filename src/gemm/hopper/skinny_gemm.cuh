#pragma once
/// The GEMM of few rows on Hopper, limited by the time to read B. Each block takes 64 columns of C with all rows, so
/// that B is read once. It computes the transposed product: the rows of B fill the 64 rows of the tensor cores'
/// instruction. For more rows the traffic of A from the L2 cache would matter. There a block takes 128 columns and half
/// of the depth.
///
/// Before the kernel may read data of its predecessors, it prefetches the first megabytes of B to the L2 cache. With
/// programmatic dependent launch it starts early, so this costs no time.

#define CUTLASS_ENABLE_GDC_FOR_SM90 1
#include <cutlass/gemm/collective/collective_builder.hpp>

#include "gemm/hopper/kernel_launch.cuh"
#include "gemm/hopper/transposed_store.cuh"

namespace tandem::cuda {

/// Element is the type of A, B and C; Rows is the largest number of rows of A. Each block of a cluster loads a part of
/// A's rows for all of them. Normed: for GEMMs with GemmNorm.
template <class Element, int Rows, int Blocks, bool Normed = false>
class SkinnyGemm {
  static constexpr int kCluster = Blocks;
  static constexpr int kGroups = Rows <= kSkinnyBlock ? 1 : 2;
  static constexpr int kSlices = kGroups == 1 ? 1 : kSkinnySlices;
  static constexpr int kCols = kSkinnyColumns * kGroups;
  // For few rows, half as many steps, each with 256 bytes of B's rows, keep the memory busier. For 64 rows both are
  // equal, and for more rows too few stages fit.
  static constexpr int kDepth = Rows <= 32 ? 128 : 64;
  static constexpr int kAlignment = 16 / static_cast<int>(sizeof(Element));
  using Tile = cute::Shape<cute::Int<kCols>, cute::Int<Rows>, cute::Int<kDepth>>;
  using Cluster = cute::Shape<cute::Int<kCluster>, cute::_1, cute::_1>;

  using Store = TransposedStore<Element, Rows, kGroups, kSlices, Normed>;
  using Schedule = std::conditional_t<kGroups == 1, cutlass::gemm::KernelTmaWarpSpecialized,
                                      cutlass::gemm::KernelTmaWarpSpecializedCooperative>;
  static constexpr int kReserved = static_cast<int>(sizeof(typename Store::Storage)) + 2048;  // with barriers
  using PlainMainloop = typename cutlass::gemm::collective::CollectiveBuilder<
      cutlass::arch::Sm90, cutlass::arch::OpClassTensorOp, Element, cutlass::layout::RowMajor, kAlignment, Element,
      cutlass::layout::ColumnMajor, kAlignment, float, Tile, Cluster,
      cutlass::gemm::collective::StageCountAutoCarveout<kReserved>, Schedule>::CollectiveOp;
  using Mainloop = GatedMainloop<PlainMainloop>;
  using Kernel = FusedKernel<Mainloop, Store>;

 public:
  static constexpr SkinnyKernel description(DType type) {
    return {type, Rows, launch, load_gemm_kernel<Kernel>, Normed};
  }

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

  // In all 192 KB, which for 132 blocks is half of the L2 cache of H200.
  static constexpr int kBoxesAhead = 1536 / kDepth / kGroups;
};

}  // namespace tandem::cuda
