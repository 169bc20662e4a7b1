/// Which form of an operator is used where nobody chose: what was measured best on two H200s (bench/NOTES.md).

#include <algorithm>

#include "gemm/contract/shared_depth.h"
#include "operators/resolve/operator_defaults.h"
#include "operators/steps/steps.h"

namespace tandem {

namespace {

/// Up to so many rows an all-reduce by packets behind a whole GEMM is the fastest: tiles of a GEMM with hooks would be
/// mostly empty.
constexpr Size kMostDecodeRows = 256;
/// Up to so many waves of tiles the chain's copies cost more time than the GEMM's own stores to the previous PE hold it
/// up; only where a tile takes less than the copies: where the GEMM is less deep. Of more than two PEs a shard is half
/// as large, and rows times depth count (kLeastWorkOfCopies; four PEs, 1024 rows, 8192 columns, tiles of 128:
/// stores 1.18 and copies 1.12 of the GEMM alone with a depth of 7168, 1.34 and 1.48 with 4096).
constexpr Size kMostWavesOfStores = 2, kLeastDepthOfCopies = 8192, kLeastDepthOfCopiesForMore = 6144;
/// From this depth on a wave that is as high as it is wide saves power that fewer bytes from memory take: 16 panels.
constexpr Size kLeastDepthOfSquareWaves = 16384;
constexpr int kSquareWave = 16;
constexpr int kTileM = 128, kTileN = 256, kTileK = 64;
/// Of more than two PEs, where each has fewer columns than that, a GEMM has little to do while a shard comes: it waits
/// less for parts of shards, and much less by narrow tiles, of which a late one holds up less. Four PEs, time over that
/// of the GEMM alone, with whole shards, halves and quarters:
///   8192 10240 8192    256 columns 1.35, 1.38, 1.25   128 columns 1.27, 1.11, 1.09
///   8192 18432 16384   256 columns 1.06               128 columns 1.04,     , 1.02
///   8192 28672 4096    256 columns 1.05, 1.04, 1.05   128 columns 1.08,     , 1.09
constexpr Size kFewColumns = 6144;
constexpr int kPartsForFewColumns = 4;
/// What narrow tiles may take more, if nothing waits.
constexpr double kMostForNarrowTiles = 1.05;

/// All-reduced sums of more than two PEs. From this local depth on more pieces are fetched beside the GEMM; below, each
/// costs more than it saves. Four of 132 SMs, which fetch, cost a GEMM of 8192x8192 no wave.
constexpr Size kLeastDepthOfQuarters = 4096;
constexpr int kFetchingSms = 4;
/// With fewer rows times local depth their chain goes by the GEMM's stores, in whole shards (four H200s: 4096x8192x8192
/// 2.41 of the GEMM alone, by copies 2.66; 1024x8192x28672 1.67 and 1.77; 2048x8192x28672 1.48 and 1.39, 8192x8192x8192
/// 2.37 and 2.19). So does that of GEMM + ReduceScatter (2048x8192x8192 1.58, by copies 1.89; 1024x4096x14336 1.75 and
/// 2.44; 8192x8192x8192 1.27 and 1.11).
constexpr Size kLeastWorkOfCopies = Size{12} << 20;

/// Columns of the tiles of kTileM rows that there are, the widest first.
constexpr int kNarrowest = 128;
constexpr int kTileWidths[] = {kTileN, 192, kNarrowest};
/// What a tile takes besides its steps, in steps of one row of A and one column of B: fitted to 26 local problems of
/// layers.
constexpr Size kTileOverhead = 30000;

/// All waves of tiles of `width` columns, in the same unit. Of the last one clusters of two share the depth.
Size tile_time(Size m, Size n, Size k, int sms, int width) {
  const Size pairs = ceil_div(m, 2 * kTileM) * ceil_div(n, width);
  const Size clusters = std::max(1, sms / 2);
  const Size wave = width * k + kTileOverhead;
  const Size rest = pairs % clusters;
  if (rest == 0) return pairs / clusters * wave;
  if (k < kLeastSharedDepth) return (pairs / clusters + 1) * wave;
  const auto last = share_depth(static_cast<int>(rest), static_cast<int>(ceil_div(k, kTileK)),
                                static_cast<int>(clusters), SharingCost::of(width));
  return pairs / clusters * wave + wave * last.steps / last.depth;
}

/// Whether AllGather + GEMM of `columns` columns a PE waits for the link now and then.
bool waits_for_link(int pes, Size columns) { return pes > 2 && columns < kFewColumns; }

/// How much of a wave a shard should be at least: of a chain, else a PE adds what its neighbour computes at the same
/// time; of gathered rows, else a wave waits for two shards (four PEs, 1024 57344 8192: 1.23 of the GEMM alone with 256
/// columns, 1.20 with 128).
constexpr Size kPercentOfAWave = 90;

bool shard_is_wave(Size m, Size n, int pes, int sms, int width) {
  const Size pairs = ceil_div(ceil_div(m, pes), 2 * kTileM) * ceil_div(n, width);
  return 100 * pairs >= kPercentOfAWave * (sms / 2);
}

/// SMs that compute while an overlapped form communicates; with its defaults otherwise.
int computing_sms(const World& world, Operator op, const OperatorOptions& o) {
  const bool steps_beside =
      op == Operator::kGemmAllReduce || (op == Operator::kGemmReduceScatter && o.copy_by == CopyBy::kCopyEngine);
  const int fetching = op == Operator::kGemmAllReduce ? std::max(0, o.communication_sms) : 0;
  return std::max(1, world.machine().gpu.sm_count - std::max(fetching, steps_beside ? ops::kStepSms : 0));
}

/// Whether the GEMM's stores carry the chain of GEMM + ReduceScatter, and not copies.
bool stores_suit_chain(const World& world, Size m, Size n, Size k) {
  const int pes = world.num_pes();
  const Size depth = ceil_div(k, pes);
  if (pes > 2) return depth < kLeastDepthOfCopiesForMore && m * depth < kLeastWorkOfCopies;
  const Size wave = std::max(1, world.machine().gpu.sm_count);
  return depth < kLeastDepthOfCopies && ceil_div(m, kTileM) * ceil_div(n, kTileN) <= kMostWavesOfStores * wave;
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
      options.splits = waits_for_link(world.num_pes(), n / world.num_pes()) ? kPartsForFewColumns : 1;
      break;
    case Operator::kGemmReduceScatter: {
      options.reduction = Reduction::kChain;
      options.copy_by = stores_suit_chain(world, m, n, k) ? CopyBy::kSm : CopyBy::kCopyEngine;
      options.splits = 2;
      break;
    }
    case Operator::kGemmAllReduce:
      options.form = m <= kMostDecodeRows ? Form::kSequential : Form::kOverlapped;
      options.reduction = Reduction::kChain;
      options.copy_by = CopyBy::kCopyEngine;
      // The last piece is still on its way when the GEMM has ended.
      options.splits = 8;
      if (world.num_pes() <= 2) break;
      options.communication_sms = kFetchingSms;
      options.splits = k / world.num_pes() >= kLeastDepthOfQuarters ? 4 : 2;
      if (m * (k / world.num_pes()) >= kLeastWorkOfCopies) break;
      options.copy_by = CopyBy::kSm;
      options.splits = 1;
      break;
  }
  if (world.machine().gpu.copy_engines == 0) options.copy_by = CopyBy::kSm;
  return options;
}

namespace ops {

int suitable_tile_n(Size m, Size n, Size k, int sms) {
  return *std::ranges::min_element(kTileWidths, {}, [&](int width) { return tile_time(m, n, k, sms, width); });
}

int suitable_gather_tile_n(Size m, Size n, Size k, int pes, int sms) {
  const int suitable = suitable_tile_n(m, n, k, sms);
  if (pes <= 2 || (!waits_for_link(pes, n) && shard_is_wave(m, n, pes, sms, suitable))) return suitable;
  const auto most = kMostForNarrowTiles * static_cast<double>(tile_time(m, n, k, sms, suitable));
  return static_cast<double>(tile_time(m, n, k, sms, kNarrowest)) <= most ? kNarrowest : suitable;
}

int suitable_chain_tile_n(Size m, Size n, Size k, int pes, int sms) {
  const int suitable = suitable_tile_n(m, n, k, sms);
  if (pes <= 2) return suitable;
  for (const int width : kTileWidths)
    if (width <= suitable && shard_is_wave(m, n, pes, sms, width)) return width;
  return kNarrowest;
}

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
    const int sms = computing_sms(world, op, o);
    const bool chain = op == Operator::kGemmReduceScatter && o.reduction == Reduction::kChain;
    o.tile_n = gather  ? suitable_gather_tile_n(o.m, n, k, pes, sms)
               : chain ? suitable_chain_tile_n(o.m, n, k, pes, sms)
                       : suitable_tile_n(o.m, n, k, sms);
    if (o.panel_group == OperatorOptions{}.panel_group && k >= kLeastDepthOfSquareWaves) o.panel_group = kSquareWave;
  }
  return o;
}

}  // namespace ops

}  // namespace tandem
