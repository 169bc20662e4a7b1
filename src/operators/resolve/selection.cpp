/// The choices that were measured best on GPUs (bench/NOTES.md); the table of constants holds their limits.

#include <algorithm>

#include "gemm/contract/stream_k.h"
#include "operators/resolve/operator_defaults.h"
#include "operators/steps/steps.h"

namespace tandem {

using ops::OperatorTable;
using ops::Place;

namespace {

/// The tiles that GPU kernels have; the widest first.
constexpr int kTileM = 128, kTileN = 256, kTileK = 64;
constexpr int kNarrowest = 128;
constexpr int kTileWidths[] = {kTileN, 192, kNarrowest};

/// Returns the time of all waves of tiles of `width` columns, in products of one row of A and one column of B. Clusters
/// of two share the depth of the last wave.
Size tile_time(const OperatorTable& table, Size m, Size n, Size k, int sms, int width) {
  const Size pairs = ceil_div(m, 2 * kTileM) * ceil_div(n, width);
  const Size clusters = std::max(1, sms / 2);
  const Size wave = width * k + static_cast<Size>(table.tiles.overhead_steps);
  const Size rest = pairs % clusters;
  if (rest == 0) return pairs / clusters * wave;
  if (k < kLeastStreamKDepth) return (pairs / clusters + 1) * wave;
  const auto last = split_last_wave(static_cast<int>(rest), static_cast<int>(ceil_div(k, kTileK)),
                                    static_cast<int>(clusters), StreamKCost::of(width));
  return pairs / clusters * wave + wave * last.steps / last.depth;
}

/// Returns whether AllGather + GEMM of `columns` columns a PE waits for the link now and then.
bool waits_for_link(const OperatorTable& table, int pes, Size columns) {
  return pes > 2 && columns < table.gather.few_columns;
}

/// Returns whether a shard is a wave of tiles, or nearly. Otherwise a PE of a chain adds tiles that its neighbour
/// computes at the same time. A wave over gathered rows otherwise waits for two shards.
bool shard_is_wave(const OperatorTable& table, Size m, Size n, int pes, int sms, int width) {
  const Size pairs = ceil_div(ceil_div(m, pes), 2 * kTileM) * ceil_div(n, width);
  const int pairs_of_sms = sms / 2;
  return 100.0 * static_cast<double>(pairs) >= table.tiles.wave_percent * pairs_of_sms;
}

/// Returns the SMs that compute while an overlapped form, otherwise with its defaults, communicates.
int computing_sms(const Place& place, Operator op, const OperatorOptions& o) {
  const bool steps_beside =
      op == Operator::kGemmAllReduce || (op == Operator::kGemmReduceScatter && o.copy_by == CopyBy::kCopyEngine);
  const int fetching = op == Operator::kGemmAllReduce ? std::max(0, o.communication_sms) : 0;
  return std::max(1, place.sm_count - std::max(fetching, steps_beside ? ops::kStepSms : 0));
}

/// Returns the chunks of each shard of GEMM + AllReduce between two PEs. The last chunk is still on its way when the
/// GEMM has ended. So there are many of them, each of which is about a wave of tiles.
int splits_of_two(const OperatorTable& table, Size m, Size n, int sms) {
  const Size tiles_of_shard = ceil_div(m, kTileM) * ceil_div(n, kTileN) / 2;
  return static_cast<int>(std::clamp<Size>(ceil_div(tiles_of_shard, sms), 1, table.all_reduce.splits_of_two));
}

/// Returns whether the GEMM's stores, and not copies, carry the chain of GEMM + ReduceScatter.
bool stores_suit_chain(const OperatorTable& table, const World& world, Size m, Size n, Size k) {
  const int pes = world.num_pes();
  const Size depth = ceil_div(k, pes);
  if (pes > 2) return depth < table.scatter.copies_depth && m * depth < table.chain_copies_work;
  const auto tiles = static_cast<double>(ceil_div(m, kTileM) * ceil_div(n, kTileN));
  const int wave = std::max(1, world.machine().gpu.sm_count);
  return depth < table.scatter.copies_depth_of_two && tiles <= table.scatter.waves_of_stores * wave;
}

}  // namespace

OperatorOptions selected_options(const World& world, Operator op, Size m, Size n, Size k, DType type) {
  const OperatorTable& table = ops::operator_table(world.machine());
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
      options.splits =
          waits_for_link(table, world.num_pes(), n / world.num_pes()) ? table.gather.few_columns_splits : 1;
      break;
    case Operator::kGemmReduceScatter: {
      options.reduction = Reduction::kChain;
      options.copy_by = stores_suit_chain(table, world, m, n, k) ? CopyBy::kSm : CopyBy::kCopyEngine;
      options.splits = table.scatter.splits;
      break;
    }
    case Operator::kGemmAllReduce:
      options.form = m <= table.all_reduce.whole_gemm_rows ? Form::kSequential : Form::kOverlapped;
      options.reduction = Reduction::kChain;
      options.copy_by = CopyBy::kCopyEngine;
      options.splits = splits_of_two(table, m, n, world.machine().gpu.sm_count);
      if (world.num_pes() <= 2) break;
      options.communication_sms = table.all_reduce.fetching_sms;
      options.splits = k / world.num_pes() >= table.all_reduce.deep_depth ? table.all_reduce.splits_if_deep
                                                                          : table.all_reduce.splits;
      if (m * (k / world.num_pes()) >= table.chain_copies_work) break;
      options.copy_by = CopyBy::kSm;
      options.splits = 1;
      break;
  }
  if (world.machine().gpu.copy_engines == 0) options.copy_by = CopyBy::kSm;
  return options;
}

namespace ops {

int suitable_tile_n(const OperatorTable& table, Size m, Size n, Size k, int sms) {
  return *std::ranges::min_element(kTileWidths, {}, [&](int width) { return tile_time(table, m, n, k, sms, width); });
}

int suitable_gather_tile_n(const OperatorTable& table, Size m, Size n, Size k, int pes, int sms) {
  const int suitable = suitable_tile_n(table, m, n, k, sms);
  if (pes <= 2 || (!waits_for_link(table, pes, n) && shard_is_wave(table, m, n, pes, sms, suitable))) return suitable;
  const auto most = table.tiles.narrow_cost * static_cast<double>(tile_time(table, m, n, k, sms, suitable));
  return static_cast<double>(tile_time(table, m, n, k, sms, kNarrowest)) <= most ? kNarrowest : suitable;
}

int suitable_ring_tile_n(const OperatorTable& table, Size m, Size n, Size k, int pes, int sms) {
  const int suitable = suitable_tile_n(table, m, n, k, sms);
  if (pes <= 2) return suitable;
  for (const int width : kTileWidths)
    if (width <= suitable && shard_is_wave(table, m, n, pes, sms, width)) return width;
  return kNarrowest;
}

TileChoice measured_tile(const Place& place, Operator op, const OperatorOptions& o) {
  const bool gather = op == Operator::kAllGatherGemm;
  const int pes = place.team.size;
  const Size n = gather ? ceil_div(o.n, pes) : o.n;
  const Size k = gather ? o.k : ceil_div(o.k, pes);
  const int sms = computing_sms(place, op, o);
  const bool ring = op == Operator::kGemmReduceScatter && o.reduction == Reduction::kChain;
  TileChoice choice;
  choice.tile_n = gather ? suitable_gather_tile_n(place.table, o.m, n, k, pes, sms)
                  : ring ? suitable_ring_tile_n(place.table, o.m, n, k, pes, sms)
                         : suitable_tile_n(place.table, o.m, n, k, sms);
  choice.panel_group =
      k >= place.table.tiles.square_wave_depth ? place.table.tiles.square_wave_panels : OperatorOptions{}.panel_group;
  return choice;
}

Size narrow_fp8_rows(const Place& place, Operator op, const OperatorOptions& o) {
  const Size n = o.ns.empty() ? o.n : *std::ranges::max_element(o.ns);
  const Size columns = op == Operator::kAllGatherGemm ? ceil_div(n, place.team.size) : n;
  const Size half_of_pairs = place.sm_count / 4;
  return half_of_pairs / ceil_div(columns, kWideFp8TileN) * 2 * kTileM;
}

}  // namespace ops

}  // namespace tandem
