#pragma once
/// The products of a GEMM of fp8 values, grouped or with scales of blocks. The tensor cores add 128 of them at a time.
/// The threads add these sums in f32, with the scales of the blocks if there are such. So long sums do not have the
/// tensor cores' few bits, and integers stay exact.
///
/// A thread has registers for the products of 192 columns beside their sums, and not for those of 256: a wider tile is
/// computed in two halves. While one warpgroup adds, the tensor cores compute for the other. Adding takes some 200
/// cycles more than its instructions, so one batch of 192 columns loses less than two of 128.

#include "gemm/hopper/groups/grouped_mainloop.cuh"

namespace tandem::cuda {

/// Scales of blocks as the kernel reads them. Without blocks every factor is 1.
struct BlockScales {
  const float* a = nullptr;  ///< [m][steps]
  const float* b = nullptr;  ///< [group][blocks of n][steps]; null: no blocks
  int steps = 0;
  int rows = 0;  ///< m
  int blocks_of_n = 0;
  // Scales that the epilogue reads; null: none.
  const float* of_rows = nullptr;     ///< [m]
  const float* of_columns = nullptr;  ///< [group][n]
  int n = 0;
};

/// Returns the scales of a GEMM of fp8 values.
inline BlockScales block_scales(const Gemm& gemm) {
  const GemmScales& of = gemm.scales;
  BlockScales scales;
  scales.a = of.a;
  scales.b = of.blocks ? of.b : nullptr;
  scales.steps = static_cast<int>(scale_blocks(gemm.k));
  scales.rows = static_cast<int>(gemm.m);
  scales.blocks_of_n = static_cast<int>(GemmScales::blocks_of_columns(gemm.n, is_gated(gemm.activation)));
  scales.of_rows = of.a_per_row ? of.a : nullptr;
  scales.of_columns = of.b_per_column ? of.b : nullptr;
  scales.n = static_cast<int>(gemm.n);
  return scales;
}

/// Gated: each 8 columns are gates and ups in turn, whose blocks have scales of their own. Loads: the mainloop whose
/// loads it takes.
template <class Base, bool Gated, class Loads = GroupedMainloop<Base>>
class ScaledMainloop : public Loads {
  using Element = typename Base::ElementA;
  static constexpr int kGroup = 128;  // threads
  static constexpr int kColumns = cute::size<1>(typename Base::TileShape{});
  static constexpr int kBatch = kColumns == 192 ? 192 : 128;  // columns that are computed together
  static constexpr int kBatches = kColumns / kBatch;
  static constexpr int kStages = Base::DispatchPolicy::Stages;
  static constexpr int kSums = kBatch / 2;  // of a thread in a batch
  static_assert(cute::size<0>(typename Base::TileShape{}) == 128 && (kColumns == 256 || (kColumns == 192 && !Gated)));
  static_assert(cute::size<2>(typename Base::TileShape{}) == 128 && sizeof(Element) == 1);

 public:
  using MainloopPipeline = typename Loads::MainloopPipeline;
  using PipelineState = typename Loads::PipelineState;
  using TensorStorage = typename Loads::TensorStorage;
  static constexpr bool kBegins = true;

  struct Params : Loads::Params {
    BlockScales scales;
  };

  /// Called by each computing thread before the steps of a tile.
  template <class Tile>
  __device__ void begin(const Params& params, const Tile& tile, int thread) {
    const BlockScales& s = params.scales;
    has_rows_ = has_rows<128>(tile, thread);
    const int group = group_of(tile);
    const int row = tile.row + thread / kGroup * 64 + thread % kGroup / 32 * 16 + thread % 32 / 4;
    const int block = tile.column * kColumns / kScaleBlock;
    middle_is_second_ = tile.column % 2 != 0;
    // B's scales are the same in all threads. In uniform registers each step would wait for the next step's.
    const int zero = static_cast<int>(zero_of_thread());
#pragma unroll
    for (int i = 0; i < 2; ++i) {
      a_[i] = min(row + 8 * i, s.rows - 1) * s.steps;
      b_[i] = (group * s.blocks_of_n + min(block + i, s.blocks_of_n - 1)) * s.steps + zero;
    }
  }

  template <class Sums, class Store>
  __device__ void mma(MainloopPipeline pipeline, PipelineState state, Sums& sums, int count, int thread,
                      TensorStorage& storage, const Params& params, Store&) const {
    const auto a_tiles = cute::make_tensor(cute::make_smem_ptr(storage.smem_A.data()), typename Base::SmemLayoutA{});
    const auto b_tiles = cute::make_tensor(cute::make_smem_ptr(storage.smem_B.data()), BatchesOfB{});
    BatchMma batch_mma;
    const auto part = batch_mma.get_slice(__shfl_sync(0xFFFFFFFFU, thread / kGroup, 0) * kGroup);
    const auto a = part.make_fragment_A(part.partition_A(a_tiles));
    const auto b = part.make_fragment_B(part.partition_B(b_tiles));
    auto products = cute::partition_fragment_C(batch_mma, cute::Shape<cute::Int<128>, cute::Int<kBatch>>{});
    static_assert(decltype(cute::size(products))::value == kSums);
    cute::clear(sums);
    if (!has_rows_) return pass_steps(pipeline, state, count);
    const int last = count - 1;
    Factors next = factors_of(params.scales, 0), after_next = factors_of(params.scales, min(1, last));
#pragma unroll 1
    for (int i = 0; i < count; ++i) {
      const Factors factors = next;
      next = after_next;
      after_next = factors_of(params.scales, min(i + 2, last));  // a load may take longer than a step
      pipeline.consumer_wait(state, pipeline.consumer_try_wait(state));
      if constexpr (kBatches == 2) {
        multiply(batch_mma, a, b, state.index(), 0, products);
        add<0>(products, factors, sums);
      }
      multiply(batch_mma, a, b, state.index(), kBatches - 1, products);
      pipeline.consumer_release(state);
      add<kBatches - 1>(products, factors, sums);
      ++state;
    }
  }

 private:
  using BatchesOfB = decltype(cute::tile_to_shape(
      typename Base::SmemLayoutAtomB{}, cute::Shape<cute::Int<kBatch>, cute::Int<128>, cute::Int<kBatches * kStages>>{},
      cute::Step<cute::_1, cute::_2, cute::_3>{}));
  using BatchMma = decltype(cute::make_tiled_mma(
      cute::GMMA::ss_op_selector<Element, Element, float,
                                 cute::Shape<cute::Int<128>, cute::Int<kBatch>, cute::Int<128>>, cute::GMMA::Major::K,
                                 cute::GMMA::Major::K>(),
      cute::Layout<cute::Shape<cute::_2, cute::_1, cute::_1>>{}));

  __device__ static int group_of(const PanelTile& tile) { return tile.group; }
  __device__ static int group_of(const WalkedTile&) { return 0; }

  /// The scales of this thread's two rows, and of two blocks of B.
  struct Factors {
    float a[2], b[2];
  };
  __device__ Factors factors_of(const BlockScales& s, int step) const {
    if (s.b == nullptr) return {{1, 1}, {1, 1}};
    return {{__ldg(s.a + a_[0] + step), __ldg(s.a + a_[1] + step)},
            {__ldg(s.b + b_[0] + step), __ldg(s.b + b_[1] + step)}};
  }

  /// Computes batch `batch` of a step's columns.
  template <class A, class B, class Products>
  __device__ static void multiply(BatchMma& mma, const A& a, const B& b, int stage, int batch, Products& products) {
    using cute::_;
    cute::warpgroup_fence_operand(products);
    cute::warpgroup_arrive();
    mma.accumulate_ = cute::GMMA::ScaleOut::Zero;
#pragma unroll
    for (int i = 0; i < cute::size<2>(a); ++i) {
      cute::gemm(mma, a(_, _, i, stage), b(_, _, i, kBatches * stage + batch), products);
      mma.accumulate_ = cute::GMMA::ScaleOut::One;
    }
    cute::warpgroup_commit_batch();
    cute::warpgroup_wait<0>();
    cute::warpgroup_fence_operand(products);
  }

  /// Adds a batch's products to the sums. For each 8 columns a thread has two neighbours of either row.
  template <int kWhich, class Products, class Sums>
  __device__ void add(const Products& products, const Factors& factors, Sums& sums) const {
    constexpr int kScales = Gated ? 2 : kBatch / 64;
    float scales[2][kScales];
#pragma unroll
    for (int row = 0; row < 2; ++row)
#pragma unroll
      for (int i = 0; i < kScales; ++i) scales[row][i] = factors.a[row] * factor_of_b<kWhich>(factors, i);
#pragma unroll
    for (int i = 0; i < kSums; ++i) {
      float& sum = sums(kWhich * kSums + i);
      sum = fmaf(products(i), scales[i / 2 % 2][Gated ? i / 4 % 2 : i / 32], sum);
    }
  }
  /// Returns the factor of 64 columns, or of even or odd groups of 8 columns if they are gated. A tile of 192 columns
  /// begins with a block, or in the middle of one.
  template <int kWhich>
  __device__ float factor_of_b(const Factors& factors, int part) const {
    if (Gated) return factors.b[part];
    if (kBatches == 2) return factors.b[kWhich];
    return part == 0 || (part == 1 && !middle_is_second_) ? factors.b[0] : factors.b[1];
  }

  bool has_rows_ = true;           // this thread's warpgroup in the present tile
  bool middle_is_second_ = false;  // whether the second of three parts of 64 columns lies in the second block
  int a_[2] = {};                  // places of the scales of this thread's rows
  int b_[2] = {};                  // places of the scales of the tile's blocks of B
};

}  // namespace tandem::cuda
