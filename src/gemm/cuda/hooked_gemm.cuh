#pragma once
/// The GEMM with hooks on Hopper: CUTLASS's warp-specialised persistent TMA/WGMMA kernel, composed with a mainloop that
/// passes gates, an epilogue that notifies, and a scheduler that follows the tile order.

// The kernel waits for what ran before it, and lets the next one start, as programmatic dependent launch asks.
#define CUTLASS_ENABLE_GDC_FOR_SM90 1
#include <cutlass/device_kernel.h>
#include <cutlass/epilogue/collective/collective_builder.hpp>
#include <cutlass/gemm/collective/collective_builder.hpp>
#include <cutlass/gemm/kernel/gemm_universal.hpp>

#include "cuda/error.h"
#include "gemm/cuda/gated_mainloop.cuh"
#include "gemm/cuda/gemm_kernel.h"
#include "gemm/cuda/notifying_epilogue.cuh"

namespace tandem::cuda {

/// An epilogue of CUTLASS's builder with other numbers of stages, and shared memory of its own for what it adds: tiles
/// with and without an addend follow one another.
template <class Epilogue, int StagesC, int StagesD>
struct WithStages;
template <int C, int D, int Fragment, bool Reuse, bool Delay, class... Rest, int StagesC, int StagesD>
struct WithStages<cutlass::epilogue::collective::CollectiveEpilogue<
                      cutlass::epilogue::Sm90TmaWarpSpecialized<C, D, Fragment, Reuse, Delay>, Rest...>,
                  StagesC, StagesD> {
  using type = cutlass::epilogue::collective::CollectiveEpilogue<
      cutlass::epilogue::Sm90TmaWarpSpecialized<StagesC, StagesD, Fragment, false, true>, Rest...>;
};

/// Element: of A, B and C. Adds: can add what a chain brings, for which it needs shared memory. Two blocks of a cluster
/// share a tile column: each loads half of B's rows for both.
template <class Element, int TileM, int TileN, int TileK, bool Adds>
class HookedGemm {
  static constexpr int kCluster = 2;
  static constexpr int kEpilogueN = 32;                                      // columns that the epilogue stores at once
  static constexpr int kAlignment = 16 / static_cast<int>(sizeof(Element));  // of TMA: 16 bytes
  using Tile = cute::Shape<cute::Int<TileM>, cute::Int<TileN>, cute::Int<TileK>>;
  using Cluster = cute::Shape<cute::Int<kCluster>, cute::_1, cute::_1>;
  using RowMajor = cutlass::layout::RowMajor;
  using ColumnMajor = cutlass::layout::ColumnMajor;

  using BuiltEpilogue = typename cutlass::epilogue::collective::CollectiveBuilder<
      cutlass::arch::Sm90, cutlass::arch::OpClassTensorOp, Tile, Cluster,
      cute::Shape<cute::Int<TileM>, cute::Int<kEpilogueN>>, float, float, std::conditional_t<Adds, Element, void>,
      RowMajor, kAlignment, Element, RowMajor, kAlignment,
      cutlass::epilogue::TmaWarpSpecializedCooperative>::CollectiveOp;
  using PlainEpilogue = typename WithStages<BuiltEpilogue, 2, 2>::type;
  using Epilogue = NotifyingEpilogue<PlainEpilogue>;
  // Besides the epilogue's, barriers.
  static constexpr int kReserved = static_cast<int>(sizeof(typename PlainEpilogue::SharedStorage)) + 1024;
  using PlainMainloop = typename cutlass::gemm::collective::CollectiveBuilder<
      cutlass::arch::Sm90, cutlass::arch::OpClassTensorOp, Element, RowMajor, kAlignment, Element, ColumnMajor,
      kAlignment, float, Tile, Cluster, cutlass::gemm::collective::StageCountAutoCarveout<kReserved>,
      cutlass::gemm::KernelTmaWarpSpecializedCooperative>::CollectiveOp;
  using Mainloop = GatedMainloop<PlainMainloop>;
  using Kernel =
      cutlass::gemm::kernel::GemmUniversal<cute::Shape<int, int, int>, Mainloop, Epilogue, OrderedSchedulerTag>;
  using Params = typename Kernel::Params;

 public:
  static constexpr GemmKernel description(DType type) { return {type, TileM, TileN, Adds, launch, load}; }

 private:
  static int load() {
    check(cudaFuncSetAttribute(&cutlass::device_kernel<Kernel>, cudaFuncAttributeMaxDynamicSharedMemorySize,
                               Kernel::SharedStorageSize),
          "loading a GEMM");
    return 1;
  }

  static void launch(const GemmLaunch& launch) {
    const Gemm& gemm = *launch.gemm;
    const TileTable table = make_tile_table(gemm, kCluster);
    if (table.units == 0) return;
    Params params{};
    params.mode = cutlass::gemm::GemmUniversalMode::kGemm;
    params.problem_shape = cute::make_shape(narrow(gemm.m), narrow(gemm.n), narrow(gemm.k));
    params.mainloop = mainloop(gemm, table, *launch.context);
    params.epilogue = epilogue(gemm, table, *launch.context);
    params.scheduler = table;
    const int clusters = static_cast<int>(min(max(launch.sms / kCluster, 1), table.units));
    cudaLaunchConfig_t config{};
    config.gridDim = dim3(static_cast<unsigned>(clusters * kCluster));
    config.blockDim = Kernel::get_block_shape();
    config.dynamicSmemBytes = Kernel::SharedStorageSize;
    config.stream = launch.stream;
    cudaLaunchAttribute attributes[2]{};
    attributes[0].id = cudaLaunchAttributeClusterDimension;
    attributes[0].val.clusterDim = {kCluster, 1, 1};
    attributes[1].id = cudaLaunchAttributeProgrammaticStreamSerialization;
    attributes[1].val.programmaticStreamSerializationAllowed = 1;
    config.attrs = attributes;
    config.numAttrs = launch.early ? 2 : 1;
    check(cudaLaunchKernelEx(&config, &cutlass::device_kernel<Kernel>, params), "gemm");
  }

  static int narrow(Size value) { return static_cast<int>(value); }

  static typename PlainMainloop::Params source(const Gemm& gemm, const void* a, Size rows) {
    const auto shape = cute::make_shape(narrow(rows), narrow(gemm.n), narrow(gemm.k));
    typename PlainMainloop::Arguments arguments{};
    arguments.ptr_A = static_cast<const Element*>(a);
    arguments.ptr_B = static_cast<const Element*>(gemm.b);
    arguments.dA = {gemm.k, cute::_1{}, 0};
    arguments.dB = {gemm.k, cute::_1{}, 0};
    return PlainMainloop::to_underlying_arguments(shape, arguments, nullptr);
  }

  static typename Mainloop::Params mainloop(const Gemm& gemm, const TileTable& table, const Context& context) {
    typename Mainloop::Params params{};
    params.table = table;
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

  static typename Epilogue::Params epilogue(const Gemm& gemm, const TileTable& table, const Context& context) {
    typename Epilogue::Params params{};
    params.table = table;
    const TileSequence sequence(gemm);
    for (int owner = 0; owner < sequence.owners(); ++owner) {
      const Range rows = sequence.rows_of_owner(owner);
      params.shard_begin[owner] = narrow(rows.begin);
      if (!rows.empty()) params.shard[owner] = destination(gemm, owner, rows);
    }
    for (int i = 0; i < table.count; ++i) params.word[i] = notified(gemm, table.pieces[i]);
    if (gemm.chain.begun == nullptr) return params;
    params.chain.arrived = gemm.chain.arrived;
    params.chain.epoch = gemm.chain.epoch;
    params.chain.first_owner = (gemm.me + 1) % gemm.rows.shards;
    params.chain.context = context;
    return params;
  }

  static typename PlainEpilogue::Params destination(const Gemm& gemm, int owner, Range rows) {
    const Size row_bytes = gemm.n * Size{sizeof(Element)};
    const Size block_bytes = gemm.rows.shard_rows() * row_bytes;
    std::byte* c = static_cast<std::byte*>(gemm.c) + rows.begin * row_bytes;
    if (gemm.c_at_collector)
      c = gemm.c_at_collector.on(gemm.collector(owner)) + gemm.block_at_collector(owner) * block_bytes;
    if (gemm.chain.begun != nullptr)
      c = owner == gemm.me ? static_cast<std::byte*>(gemm.c) : gemm.chain.passed_on + owner * block_bytes;
    typename PlainEpilogue::Arguments arguments{};
    arguments.thread.alpha = 1;
    arguments.thread.beta = 0;
    arguments.ptr_D = reinterpret_cast<Element*>(c);
    arguments.dD = {gemm.n, cute::_1{}, 0};
    if constexpr (Adds) {
      arguments.thread.beta = gemm.chain_adds_to(owner) ? 1 : 0;
      arguments.ptr_C = gemm.chain.begun != nullptr
                            ? reinterpret_cast<const Element*>(gemm.chain.begun + owner * block_bytes)
                            : arguments.ptr_D;
      arguments.dC = arguments.dD;
    }
    const auto shape = cute::make_shape(narrow(rows.size()), narrow(gemm.n), narrow(gemm.k));
    return PlainEpilogue::to_underlying_arguments(shape, arguments, nullptr);
  }

  static Signal* notified(const Gemm& gemm, const TablePiece& piece) {
    if (gemm.chain.begun != nullptr && piece.owner != gemm.me) return gemm.chain.told + piece.slot;
    if (!gemm.notify.words) return nullptr;
    if (gemm.notify.local) return gemm.notify.words.local() + piece.slot;
    return gemm.notify.words.on(gemm.collector(piece.owner)) +
           gemm.rows.slot(gemm.block_at_collector(piece.owner), piece.slot % gemm.rows.splits);
  }
};

}  // namespace tandem::cuda
