#include "ops/operator_defaults.h"

#include <algorithm>

namespace tandem::ops {

namespace {

/// Pieces of that size or less leave by SMs: a copy engine's start and the wait before it cost more than they save.
constexpr Size kSmallShard = Size{2} << 20;
/// What a collective costs beside its bytes: launches, flags.
constexpr double kCollectiveUs = 10;
constexpr int kMostSplits = 8;

// Two H200s, bf16 (bench/NOTES.md). A collective by SMs, and what waits and signals add to a GEMM that overlaps.
constexpr double kSmCollectiveUs = 14, kSmCollectiveBytesPerUs = 0.265e6;
constexpr double kGatedUs = 5, kChainedUs = 20, kFetchedUs = 40;
constexpr int kSequentialGatherSms = 16;
// Four H200s (2026-11-22), GEMM + ReduceScatter of 256 to 2,048 rows: what a whole reduction by SMs takes behind the
// GEMM, and what a chain adds to one.
constexpr double kScatterOfMoreUs = 20, kScatterOfMoreBytesPerUs = 0.21e6, kChainOfMoreUs = 8;

/// A PE's part of the problem with `m` rows, as tiles.
class Work {
 public:
  Work(Operator op, const OperatorOptions& o, const Machine& model, const Team& team, Size m)
      : op_(op), o_(o), model_(model), pes_(team.size), m_(m) {
    const bool gather = op == Operator::kAllGatherGemm;
    n_ = gather ? ceil_div(o.n, pes_) : o.n;
    k_ = gather ? o.k : ceil_div(o.k, pes_);
    columns_ = ceil_div(n_, o.tile_n);
  }

  Size tiles() const { return ceil_div(m_, o_.tile_m) * columns_; }
  /// Panels do not straddle pieces, whose last ones are filled up to `rows_at_once`, a panel's rows or a multiple.
  Size tiles_of_pieces(int splits, int rows_at_once) const {
    const RowPartition rows{m_, pes_, splits, 2 * o_.tile_m};  // see Settings::rows
    Size panels = 0;
    for (int owner = 0; owner < pes_; ++owner)
      for (int part = 0; part < splits; ++part) panels += ceil_div(rows.part(owner, part).size(), rows_at_once);
    panels *= rows_at_once / o_.tile_m;
    return panels * columns_;
  }
  double gemm_us(Size tiles, int sms) const {
    const GemmShape shape{m_, n_, k_, static_cast<int>(size_of(o_.type))};
    // Whole waves: pieces end in the middle of one.
    return gemm_tile_times(model_, o_.tile_m, o_.tile_n, shape, sms).whole_us *
           static_cast<double>(ceil_div(tiles, Size{sms}));
  }
  /// A's, or the sums'.
  double moved_bytes() const {
    const bool gather = op_ == Operator::kAllGatherGemm;
    return static_cast<double>(m_ * (gather ? o_.k * size_of(o_.type) : o_.n * size_of(o_.result_type())));
  }
  /// The whole collective on all SMs, its additions with it.
  double collective_us() const {
    const double link_us = moved_bytes() * (pes_ - 1) / pes_ / (model_.link.load_gbps.at(model_.gpu.sm_count) * 1e3);
    return kCollectiveUs + link_us * (op_ == Operator::kGemmAllReduce ? 2 : 1);
  }

  double measured_collective_us() const {
    const double bytes = moved_bytes() * (pes_ - 1) / pes_;
    if (scatters_to_more()) return kScatterOfMoreUs + bytes / kScatterOfMoreBytesPerUs;
    return kSmCollectiveUs + bytes / kSmCollectiveBytesPerUs * (op_ == Operator::kGemmAllReduce ? 2 : 1);
  }
  double measured_sequential_us() const {
    return gemm_alone_us(model_, m_, n_, k_, static_cast<int>(size_of(o_.type)), model_.gpu.sm_count) +
           measured_collective_us();
  }
  /// The last wave of tiles begins when everything has arrived, at the soonest; with more than two PEs all-reduced sums
  /// are fetched when most of that has happened.
  double measured_overlapped_us(int sms) const {
    const bool fetched_after = op_ == Operator::kGemmAllReduce && pes_ > 2;
    const double beside = measured_collective_us() / (fetched_after ? 2 : 1);
    // Two blocks compute tiles below each other: of a piece with less than two panels, one of them computes nothing.
    const int rows_at_once = (scatters_to_more() ? 2 : 1) * o_.tile_m;
    const double gemm = std::max(gemm_us(tiles_of_pieces(o_.splits, rows_at_once), sms), beside + gemm_us(1, sms));
    if (op_ == Operator::kAllGatherGemm) return gemm + kGatedUs;
    if (fetched_after) return gemm + kFetchedUs + measured_collective_us() / 2;
    if (scatters_to_more()) return gemm + kChainOfMoreUs;
    return gemm + kChainedUs + (op_ == Operator::kGemmAllReduce ? measured_collective_us() / 2 : 0);
  }

 private:
  bool scatters_to_more() const { return op_ == Operator::kGemmReduceScatter && pes_ > 2; }

  Operator op_;
  const OperatorOptions& o_;
  const Machine& model_;
  int pes_;
  Size m_, n_ = 0, k_ = 0, columns_ = 0;
};

CopyBy suitable_mover(Operator op, const OperatorOptions& o, const Machine& model, const Team& team) {
  if (op == Operator::kGemmAllReduce || !team.one_node()) return CopyBy::kCopyEngine;
  // The GEMM's own stores: nothing has to start when a piece is complete.
  if (op == Operator::kGemmReduceScatter)
    return model.link.fabric == Fabric::kFullMesh ? CopyBy::kCopyEngine : CopyBy::kSm;
  return ceil_div(o.m, team.size) * o.k * size_of(o.type) <= kSmallShard ? CopyBy::kSm : CopyBy::kCopyEngine;
}

/// Pieces of half a wave or more; only where pieces travel more than once.
int suitable_splits(Operator op, const Work& work, int sm_count, int pes) {
  if (op != Operator::kGemmAllReduce) return 1;
  return static_cast<int>(std::clamp<Size>(2 * work.tiles() / pes / sm_count, 1, kMostSplits));
}

/// SMs that the GEMM's last wave leaves idle cost it nothing.
int spare_sms(const Work& work, const OperatorOptions& o, int sm_count) {
  constexpr int kMost = 8, kLeast = 3;
  const Size tiles = work.tiles_of_pieces(o.splits, o.tile_m);
  const auto needed = static_cast<int>(ceil_div(tiles, ceil_div(tiles, Size{sm_count})));
  const int spare = std::min(kMost, sm_count - needed);
  return spare < kLeast ? std::min(kMost, sm_count / 2) : spare;
}

}  // namespace

Machine planning_model(const Machine& machine) {
  if (!machine.gemm.tiles.empty()) return machine;
  Machine model = load_machine(machine.name.find("H100") != std::string::npos ? "h100x8" : "h200x8");
  model.gpu.sm_count = machine.gpu.sm_count;
  return model;
}

OperatorOptions complete(Operator op, const OperatorOptions& given, const Machine& model, const Team& team) {
  OperatorOptions o = given;
  const int sm_count = model.gpu.sm_count;
  const Work work(op, o, model, team, std::max<Size>(o.m, 1));
  // The chain of two has one link; longer ones keep the sums on their way for longer than the owner needs to add them.
  constexpr int kShortChain = 2;
  if (!o.reduction)
    o.reduction = op == Operator::kGemmAllReduce && team.one_node() && team.size == kShortChain ? Reduction::kChain
                                                                                                : Reduction::kOwner;
  if (!o.copy_by) o.copy_by = suitable_mover(op, o, model, team);
  if (o.splits == 0) o.splits = team.one_node() ? suitable_splits(op, work, sm_count, team.size) : 1;
  if (op == Operator::kGemmAllReduce && o.communication_sms < 0 && team.one_node() && o.reduction == Reduction::kOwner)
    o.communication_sms = spare_sms(work, o, sm_count);
  return o;
}

void choose_sequential_transport(Operator op, OperatorOptions& options, int sm_count) {
  options.copy_by = CopyBy::kSm;
  options.splits = 1;
  options.communication_sms =
      op == Operator::kAllGatherGemm ? std::min(kSequentialGatherSms, std::max(1, sm_count / 2)) : 0;
}

Size sequential_rows(Operator op, const OperatorOptions& o, const Machine& model, const Team& team, bool measured) {
  if (!team.one_node() || team.size == 1) return 0;
  const int sms = model.gpu.sm_count;
  const int gemm_sms = sms - std::max(0, o.communication_sms);
  Size rows = 0;
  for (Size m = std::min<Size>(o.tile_m, o.m); m > rows && m <= o.m; m = std::min<Size>(2 * m, o.m)) {
    const Work work(op, o, model, team, m);
    if (measured) {
      if (work.measured_sequential_us() >= work.measured_overlapped_us(gemm_sms)) break;
      rows = m;
      continue;
    }
    // Where a shard is less than a wave there is one piece of it, and nothing to overlap with.
    if (op == Operator::kGemmAllReduce) {
      if (work.tiles() >= Size{sms} * team.size) break;
      rows = m;
      continue;
    }
    const double sequential = work.gemm_us(work.tiles(), sms) + work.collective_us();
    const double overlapped =
        std::max(work.gemm_us(work.tiles_of_pieces(o.splits, o.tile_m), gemm_sms), work.collective_us()) +
        work.collective_us() / team.size;
    if (sequential >= overlapped) break;
    rows = m;
  }
  return rows;
}

}  // namespace tandem::ops
