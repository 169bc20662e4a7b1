/// Which form of an operator is used where nobody chose: what was measured best on two H200s (bench/NOTES.md).

#include <algorithm>

#include "ops/operator_defaults.h"
#include "ops/steps.h"

namespace tandem {

namespace {

/// Up to so many rows an all-reduce by packets behind a whole GEMM is the fastest: tiles of a GEMM with hooks would be
/// mostly empty.
constexpr Size kMostDecodeRows = 256;
/// Up to so many waves of tiles the chain's copies cost more time than the GEMM's own stores to the previous PE hold it
/// up; of two PEs, only where a tile takes less than the copies: where the GEMM is less deep.
constexpr Size kMostWavesOfStores = 2, kLeastDepthOfCopies = 8192;
/// From this depth on a wave that is as high as it is wide saves power that fewer bytes from memory take: 16 panels.
constexpr Size kLeastDepthOfSquareWaves = 16384;
constexpr int kSquareWave = 16;
constexpr int kTileM = 128, kTileN = 256;
/// Of more than two PEs, where each has fewer columns than that, a shard is computed about as fast as it comes: GEMMs
/// wait less for parts of shards (8192x10240x8192 of four: 1.45 of the GEMM alone with whole shards, 1.38 with halves,
/// 1.26 with quarters; 8192x28672x4096: 1.04, 1.05, 1.05).
constexpr Size kFewColumns = 4096;
constexpr int kPartsForFewColumns = 4;

/// All-reduced sums of more than two PEs. From this local depth on more pieces are fetched beside the GEMM; below, each
/// costs more than it saves. Four of 132 SMs, which fetch, cost a GEMM of 8192x8192 no wave.
constexpr Size kLeastDepthOfQuarters = 4096;
constexpr int kFetchingSms = 4;
/// With fewer rows times local depth their chain goes by the GEMM's stores, in whole shards (four H200s: 4096x8192x8192
/// 2.41 of the GEMM alone, by copies 2.66; 1024x8192x28672 1.67 and 1.77; 2048x8192x28672 1.48 and 1.39, 8192x8192x8192
/// 2.37 and 2.19).
constexpr Size kLeastWorkOfCopies = Size{12} << 20;

/// Columns of the tiles of kTileM rows that there are, the widest first.
constexpr int kTileWidths[] = {kTileN, 192, 128};
/// What a tile takes besides its steps, in steps of one row of A and one column of B: fitted to 26 local problems of
/// layers.
constexpr Size kTileOverhead = 21000;

/// SMs that compute while an overlapped form communicates; with its defaults otherwise.
int computing_sms(const World& world, Operator op, const OperatorOptions& o) {
  const bool steps_beside =
      op == Operator::kGemmAllReduce || (op == Operator::kGemmReduceScatter && o.copy_by == CopyBy::kCopyEngine);
  const int fetching = op == Operator::kGemmAllReduce ? std::max(0, o.communication_sms) : 0;
  return std::max(1, world.machine().gpu.sm_count - std::max(fetching, steps_beside ? ops::kStepSms : 0));
}

}  // namespace

OperatorOptions selected_options(const World& world, Operator op, Size m, Size n, Size k, DType type) {
  OperatorOptions options;
  options.m = m;
  options.n = n;
  options.k = k;
  options.type = type;
  options.tile_m = kTileM;
  options.tile_n = kTileN;
  options.form = Form::kOverlapped;
  if (!world.team().one_node()) {
    if (op == Operator::kGemmAllReduce) options.form = Form::kSequential;
    return options;
  }
  switch (op) {
    case Operator::kAllGatherGemm:
      options.copy_by = CopyBy::kCopyEngine;
      options.splits = world.num_pes() > 2 && n / world.num_pes() < kFewColumns ? kPartsForFewColumns : 1;
      break;
    case Operator::kGemmReduceScatter: {
      const Size wave = std::max(1, world.machine().gpu.sm_count);
      const bool copies_hide = world.num_pes() == 2 && ceil_div(k, Size{2}) >= kLeastDepthOfCopies;
      const bool few = !copies_hide && ceil_div(m, kTileM) * ceil_div(n, kTileN) <= kMostWavesOfStores * wave;
      options.reduction = Reduction::kChain;
      options.copy_by = few ? CopyBy::kSm : CopyBy::kCopyEngine;
      options.splits = 2;
      break;
    }
    case Operator::kGemmAllReduce:
      options.form = m <= kMostDecodeRows ? Form::kSequential : Form::kOverlapped;
      options.reduction = Reduction::kChain;
      options.copy_by = CopyBy::kCopyEngine;
      // The last piece is still on its way when the GEMM has ended.
      options.splits = 8;
      if (world.num_pes() == 2) break;
      options.communication_sms = kFetchingSms;
      options.splits = k / world.num_pes() >= kLeastDepthOfQuarters ? 4 : 2;
      if (m * (k / world.num_pes()) >= kLeastWorkOfCopies) break;
      options.copy_by = CopyBy::kSm;
      options.splits = 1;
      break;
  }
  return options;
}

namespace ops {

int suitable_tile_n(Size m, Size n, Size k, int sms) {
  const auto time = [&](int width) {
    const Size pairs = ceil_div(m, 2 * kTileM) * ceil_div(n, width);
    return ceil_div(pairs, Size{std::max(1, sms / 2)}) * (width * k + kTileOverhead);
  };
  return *std::ranges::min_element(kTileWidths, {}, time);
}

bool is_measured(const World& world) { return world.machine().gemm.tiles.empty(); }

OperatorOptions with_measured(const World& world, Operator op, const OperatorOptions& given) {
  const OperatorOptions selected = selected_options(world, op, given.m, given.n, given.k, given.type);
  OperatorOptions o = given;
  if (!world.team().one_node() && o.form == Form::kSuitable) o.form = selected.form;
  // A chain sends in one order alone, and pushes.
  const bool chain_may_be = o.direction == Direction::kPush && (o.order.empty() || o.order == "peers_first");
  if (!o.reduction && selected.reduction && chain_may_be) o.reduction = selected.reduction;
  if (!o.copy_by) o.copy_by = selected.copy_by;
  if (o.splits == 0) o.splits = selected.splits;
  const bool is_selected_chain = selected.reduction == Reduction::kChain && o.reduction == selected.reduction;
  if (o.communication_sms < 0 && is_selected_chain) o.communication_sms = selected.communication_sms;
  // Where more was said than what to compute, tiles are the caller's too.
  const bool is_open = given.use_tuned && given.form == Form::kSuitable && !given.copy_by && given.splits == 0;
  const bool is_plain =
      o.ns.empty() && o.type == DType::kBF16 && o.result_type() == o.type && o.b_layout == BLayout::kNxK;
  if (is_open && is_plain && o.tile_m == kTileM && o.tile_n == kTileN) {
    const bool gather = op == Operator::kAllGatherGemm;
    const int pes = world.team().size;
    const Size n = gather ? ceil_div(o.n, pes) : o.n;
    const Size k = gather ? o.k : ceil_div(o.k, pes);
    o.tile_n = suitable_tile_n(o.m, n, k, computing_sms(world, op, o));
    if (o.panel_group == OperatorOptions{}.panel_group && k >= kLeastDepthOfSquareWaves) o.panel_group = kSquareWave;
  }
  return o;
}

}  // namespace ops

}  // namespace tandem
