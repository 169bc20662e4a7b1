#pragma once
/// The products of fp8 values with few rows in each group. As in ScaledMainloop, the tensor cores add 128 of them at a
/// time. The threads add these sums in f32, with the scales of the blocks if there are such.

#include "gemm/hopper/groups/few_rows_mainloop.cuh"
#include "gemm/hopper/groups/scaled_mainloop.cuh"

namespace tandem::cuda {

/// Base: as that of FewRowsMainloop. Tiles have 128 columns of B, or the 256 of 128 gates and their ups.
template <class Base>
class FewRowsScaledMainloop : public FewRowsMainloop<Base> {
  using Loads = FewRowsMainloop<Base>;
  static constexpr int kParts = Loads::kStepDepth / static_cast<int>(kScaleBlock);  // of a step
  static constexpr int kOfThread = Loads::kRows / 4;                                // rows of a thread
  static_assert(Loads::kCols == 128 || Loads::kCols == 256);

 public:
  using MainloopPipeline = typename Loads::MainloopPipeline;
  using PipelineState = typename Loads::PipelineState;
  using TensorStorage = typename Loads::TensorStorage;
  static constexpr bool kBegins = true;

  struct Params : Loads::Params {
    BlockScales scales;
    bool gated = false;
  };

  /// Called by each computing thread before the steps of a tile, whose epilogue's scales come to the L1 cache
  /// meanwhile.
  __device__ void begin(const Params& params, const PanelTile& tile, int thread) {
    const BlockScales& s = params.scales;
#pragma unroll
    for (int i = 0; i < kOfThread; ++i)
      a_[i] = min(tile.row + i / 2 * 8 + thread % 4 * 2 + i % 2, s.rows - 1) * s.steps;
    const int block = params.gated ? tile.column * Loads::kCols / 256 * 2 : tile.column;
#pragma unroll
    for (int i = 0; i < 2; ++i) b_[i] = (tile.group * s.blocks_of_n + block + (params.gated ? i : 0)) * s.steps;
    constexpr int kLine = 32;  // floats
    const int place = thread * kLine;
    const int column = tile.column * Loads::kCols + place;
    if (s.of_columns != nullptr && place < Loads::kCols && column < s.n)
      prefetch_line(s.of_columns + Size{tile.group} * s.n + column);
    if (s.of_rows != nullptr && thread == 0) prefetch_line(s.of_rows + tile.row);
  }

  template <class Sums, class Store>
  __device__ void mma(MainloopPipeline pipeline, PipelineState state, Sums& sums, int count, int thread,
                      TensorStorage& storage, const Params& params, Store&) const {
    const auto a_tiles = cute::make_tensor(cute::make_smem_ptr(storage.smem_A.data()), typename Base::SmemLayoutA{});
    const auto b_tiles = cute::make_tensor(cute::make_smem_ptr(storage.smem_B.data()), typename Base::SmemLayoutB{});
    typename Base::TiledMma mma;
    const auto part = mma.get_slice(__shfl_sync(0xFFFFFFFFU, thread / kGroup, 0) * kGroup);
    const auto a = part.make_fragment_A(part.partition_A(a_tiles));
    const auto b = part.make_fragment_B(part.partition_B(b_tiles));
    auto products = cute::partition_fragment_C(mma, cute::take<0, 2>(typename Base::TileShape{}));
    cute::clear(sums);
    Factors next = factors_of(params.scales, 0);
#pragma unroll 1
    for (int i = 0; i < count; ++i) {
      pipeline.consumer_wait(state, pipeline.consumer_try_wait(state));
#pragma unroll
      for (int of_step = 0; of_step < kParts; ++of_step) {
        const Factors factors = next;
        next = factors_of(params.scales, i * kParts + of_step + 1);
        multiply(mma, a, b, state.index(), of_step, products);
        if (of_step + 1 == kParts) pipeline.consumer_release(state);
        add(products, factors, sums);
      }
      ++state;
    }
  }

 private:
  static constexpr int kGroup = 128;  // threads

  /// The scales of this thread's rows, and of its gates and ups, or twice those of its columns.
  struct Factors {
    float a[kOfThread], b[2];
  };
  /// `block`: of the depth; behind the last one the last one's.
  __device__ Factors factors_of(const BlockScales& s, int block) const {
    Factors factors;
    const int at = min(block, s.steps - 1);
#pragma unroll
    for (int i = 0; i < kOfThread; ++i) factors.a[i] = s.b == nullptr ? 1.0F : __ldg(s.a + a_[i] + at);
#pragma unroll
    for (int i = 0; i < 2; ++i) factors.b[i] = s.b == nullptr ? 1.0F : __ldg(s.b + b_[i] + at);
    return factors;
  }

  /// Computes the products of part `of_step` of a step's depth.
  template <class Mma, class A, class B, class Products>
  __device__ static void multiply(Mma& mma, const A& a, const B& b, int stage, int of_step, Products& products) {
    using cute::_;
    constexpr int kBlocks = decltype(cute::size<2>(a))::value / kParts;
    cute::warpgroup_fence_operand(products);
    cute::warpgroup_arrive();
    mma.accumulate_ = cute::GMMA::ScaleOut::Zero;
#pragma unroll
    for (int i = 0; i < kBlocks; ++i) {
      cute::gemm(mma, a(_, _, of_step * kBlocks + i, stage), b(_, _, of_step * kBlocks + i, stage), products);
      mma.accumulate_ = cute::GMMA::ScaleOut::One;
    }
    cute::warpgroup_commit_batch();
    cute::warpgroup_wait<0>();
    cute::warpgroup_fence_operand(products);
  }

  /// Adds products to the sums. For each 8 rows a thread has two neighbours of a column, and two of the eighth column
  /// after it.
  template <class Products, class Sums>
  __device__ static void add(const Products& products, const Factors& factors, Sums& sums) {
#pragma unroll
    for (int i = 0; i < cute::size(products); ++i) {
      const float scale = factors.a[i / 4 * 2 % kOfThread + i % 2] * factors.b[i / 2 % 2];
      sums(i) = fmaf(products(i), scale, sums(i));
    }
  }

  int a_[kOfThread] = {};  // places of the scales of this thread's rows
  int b_[2] = {};          // and of the blocks of B of its gates and ups
};

}  // namespace tandem::cuda
