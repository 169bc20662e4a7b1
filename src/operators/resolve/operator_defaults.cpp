#include "operators/resolve/operator_defaults.h"

#include <algorithm>

namespace tandem::ops {

namespace {

/// Pieces of that size or less leave by SMs: a copy engine's start and the wait before it cost more than they save.
constexpr Size kSmallShard = Size{2} << 20;
/// Where the shards take longer to come than the GEMM to compute, SMs move pieces up to this size sooner, of more than
/// four PEs: they send to all peers at once.
constexpr Size kLargeShard = Size{8} << 20;
constexpr int kFewPeers = 4;
/// What a collective costs beside its bytes: launches, flags.
constexpr double kCollectiveUs = 10;
/// What signals, waits and the last additions cost beside that where a GEMM's sums are on their way meanwhile: by its
/// own stores; by copy engines; by copy engines there and back.
constexpr double kStoredUs = 12, kCopiedUs = 5, kCopiedTwiceUs = 50;
constexpr double kShownOfMany = 0.75, kManyUs = 20;
/// Gathered rows between nodes: what the sequential form's start costs, and how much of the time in which rows come the
/// GEMM is at work.
constexpr double kStartBetweenNodesUs = 17, kHiddenOfSpread = 0.25;
/// Both times are estimates, so the overlapped form has to be ahead of the sequential one by more than a little.
constexpr double kLeastGain = 1.03;
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
      : op_(op), o_(o), model_(model), team_(team), pes_(team.size), m_(m) {
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
  /// The whole collective, its additions with it, by who moves the bytes.
  double collective_us(CopyBy by) const {
    const double within = moved_bytes() * (team_.node_size - 1) / team_.node_size / bytes_per_us(by);
    const double bytes_us = within * (op_ == Operator::kGemmAllReduce ? 2 : 1);
    const double starts_us = by == CopyBy::kCopyEngine ? copies() * model_.gpu.copy_engine_startup_us : 0;
    return kCollectiveUs + std::max(bytes_us, starts_us) + nic_us();
  }

  /// One after the other. Sums of all are added up by SMs, in symmetric memory, from where they are copied.
  double sequential_us(int sms) const {
    const bool all = op_ == Operator::kGemmAllReduce;
    const double copied_us = all ? moved_bytes() / (model_.gpu.copy_engine_local_gbps * 1e3) : 0;
    return gemm_us(tiles(), sms) + collective_us(all ? CopyBy::kSm : *o_.copy_by) + copied_us;
  }
  /// Beside each other. By copies nothing leaves before the first wave of tiles is done; the last shard that comes or
  /// goes has nothing beside it.
  double overlapped_us(int sms) const {
    const double gemm = gemm_us(tiles_of_pieces(o_.splits, o_.tile_m), sms);
    const double collective = collective_us(*o_.copy_by);
    if (op_ == Operator::kAllGatherGemm && !team_.one_node()) {
      // Rows of other nodes come late and close together, so that most waves of tiles follow them. A shard that does
      // not fill its tiles costs more waves than the whole. (Fitted to the simulator, h100x8-rail, 2 and 4 nodes.)
      const double spread = collective - kCollectiveUs - model_.nic.latency_us;
      return gemm + collective - kStartBetweenNodesUs - kHiddenOfSpread * spread;
    }
    const double side_by_side = std::max(gemm, collective) + collective / pes_;
    if (op_ == Operator::kAllGatherGemm) return side_by_side;
    if (*o_.copy_by == CopyBy::kSm) return side_by_side + kStoredUs;
    const double after_a_wave = std::max(gemm, gemm_us(1, sms) + collective);
    if (op_ == Operator::kGemmReduceScatter) return after_a_wave + kCopiedUs;
    const double there_and_back =
        after_a_wave + (o_.reduction == Reduction::kChain ? 0 : collective / pes_) + kCopiedTwiceUs;
    // Between many PEs little of the sums hides behind the GEMM (fitted to the simulator, 1024 to 8192 rows on h200x8).
    const bool is_shown = pes_ > kFewPeers && model_.link.fabric == Fabric::kSwitched;
    return is_shown ? std::max(there_and_back, gemm + kShownOfMany * collective + kManyUs) : there_and_back;
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
  /// Of a PE that sends to all others of its node, or in a ring where SMs add up the sums of all.
  double bytes_per_us(CopyBy by) const {
    const Machine::Link& link = model_.link;
    const double sms = link.load_gbps.at(model_.gpu.sm_count);
    const int peers = std::max(1, team_.node_size - 1);
    const double one = by == CopyBy::kSm ? sms : std::min(sms, model_.gpu.copy_engine_gbps);
    // Gathered rows are copied to all peers at once, sums to one after the other.
    const int copied_to = op_ == Operator::kAllGatherGemm ? std::clamp(model_.gpu.copy_engines, 1, peers) : 1;
    if (link.fabric == Fabric::kFullMesh) return 1e3 * one * (by == CopyBy::kSm ? peers : copied_to);
    const bool is_ring = op_ == Operator::kGemmAllReduce && by == CopyBy::kSm;
    if (link.fabric == Fabric::kSwitched || link.numa_nodes < 2 || is_ring) return 1e3 * one;
    // Over the bridge go the bytes of a socket's PEs for those of the other ones.
    const int beside = std::clamp(model_.pes_per_node / link.numa_nodes, 1, team_.node_size);
    const int beyond = team_.node_size - beside;
    return beyond == 0 ? 1e3 * one : 1e3 * std::min(one, link.bridge_gbps * peers / (beside * beyond));
  }
  /// A PE's sums or rows for the PEs on its rail, where there are NICs.
  double nic_us() const {
    if (team_.one_node() || model_.nic.gbps <= 0) return 0;
    return model_.nic.latency_us + moved_bytes() / pes_ * (team_.nodes() - 1) / (model_.nic.gbps * 1e3);
  }
  /// How many a PE's copy engine starts for a call.
  int copies() const { return (pes_ - 1) * o_.splits * (op_ == Operator::kGemmAllReduce ? 2 : 1); }
  bool scatters_to_more() const { return op_ == Operator::kGemmReduceScatter && pes_ > 2; }

  Operator op_;
  const OperatorOptions& o_;
  const Machine& model_;
  const Team& team_;
  int pes_;
  Size m_, n_ = 0, k_ = 0, columns_ = 0;
};

CopyBy suitable_mover(Operator op, const OperatorOptions& o, const Work& work, const Machine& model, const Team& team) {
  if (op == Operator::kGemmAllReduce) return CopyBy::kCopyEngine;
  // The GEMM's own stores: nothing has to start when a piece is complete. Between nodes fewer rows than PEs need few
  // copies.
  if (op == Operator::kGemmReduceScatter) {
    const bool has_few_copies = !team.one_node() && o.m < team.size;
    return has_few_copies || model.link.fabric == Fabric::kFullMesh ? CopyBy::kCopyEngine : CopyBy::kSm;
  }
  const Size shard = ceil_div(o.m, team.size) * o.k * size_of(o.type);
  if (shard <= kSmallShard) return CopyBy::kSm;
  // What comes from other nodes goes on to the whole node: many copies, each with a start of its own.
  const bool has_many_copies =
      !team.one_node() || (model.link.fabric == Fabric::kSwitched && team.size > kFewPeers && shard <= kLargeShard);
  if (!has_many_copies) return CopyBy::kCopyEngine;
  const bool is_late = work.collective_us(CopyBy::kSm) > work.gemm_us(work.tiles(), model.gpu.sm_count);
  return is_late ? CopyBy::kSm : CopyBy::kCopyEngine;
}

/// All-reduced pieces travel twice: half a wave or more. The shards of a mesh come all at the same time, each by its
/// own link: there only pieces let a GEMM begin before all of them are there.
int suitable_splits(Operator op, const Work& work, const Machine& model, int pes) {
  if (op == Operator::kAllGatherGemm) return model.link.fabric == Fabric::kFullMesh ? kMostSplits : 1;
  if (op != Operator::kGemmAllReduce) return 1;
  return static_cast<int>(std::clamp<Size>(2 * work.tiles() / pes / model.gpu.sm_count, 1, kMostSplits));
}

/// The owners' SMs that add up all-reduced sums beside the GEMM: more of them where the link and not the GEMM takes the
/// longest.
int reducing_sms(const Work& work, int sm_count) {
  const bool is_late = work.collective_us(CopyBy::kCopyEngine) > work.gemm_us(work.tiles(), sm_count);
  return std::max(1, is_late ? 3 * sm_count / 16 : sm_count / 8);
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
  const Work work(op, o, model, team, std::max<Size>(o.m, 1));
  // The chain of two has one link; longer ones keep the sums on their way for longer than the owner needs to add them.
  constexpr int kShortChain = 2;
  if (!o.reduction)
    o.reduction = op == Operator::kGemmAllReduce && team.one_node() && team.size == kShortChain ? Reduction::kChain
                                                                                                : Reduction::kOwner;
  // Collectives between nodes in pieces, each behind its part of the GEMM, take longer than all in one.
  if (op == Operator::kGemmAllReduce && !team.one_node() && o.form == Form::kSuitable && o.splits == 0)
    o.form = Form::kSequential;
  if (o.splits == 0) o.splits = team.one_node() ? suitable_splits(op, work, model, team.size) : 1;
  if (!o.copy_by) o.copy_by = suitable_mover(op, o, work, model, team);
  if (op == Operator::kGemmAllReduce && o.communication_sms < 0 && team.one_node() && o.reduction == Reduction::kOwner)
    o.communication_sms = reducing_sms(work, model.gpu.sm_count);
  return o;
}

void choose_sequential_transport(Operator op, OperatorOptions& options, int sm_count) {
  options.copy_by = CopyBy::kSm;
  options.splits = 1;
  options.communication_sms =
      op == Operator::kAllGatherGemm ? std::min(kSequentialGatherSms, std::max(1, sm_count / 2)) : 0;
}

Size sequential_rows(Operator op, const OperatorOptions& o, const Machine& model, const Team& team, bool measured) {
  if (team.size == 1) return 0;
  // Between nodes GEMM + AllReduce has one form alone.
  if (!team.one_node() && op == Operator::kGemmAllReduce) return 0;
  const int sms = model.gpu.sm_count;
  const int gemm_sms = std::max(1, sms - std::max(0, o.communication_sms));
  const bool by_measurements = measured && team.one_node();
  const auto is_overlapped = [&](Size m) {
    const Work work(op, o, model, team, m);
    return by_measurements ? work.measured_sequential_us() >= work.measured_overlapped_us(gemm_sms)
                           : work.sequential_us(sms) >= kLeastGain * work.overlapped_us(gemm_sms);
  };
  // The rows that the plan is for count the most. The rule of GPUs was checked by measurements as it is below.
  if (!by_measurements && o.m > 0 && !is_overlapped(o.m)) return o.m;
  Size rows = 0;
  for (Size m = std::min<Size>(o.tile_m, o.m); m > rows && m <= o.m; m = std::min<Size>(2 * m, o.m)) {
    if (is_overlapped(m)) break;
    rows = m;
  }
  return rows;
}

}  // namespace tandem::ops
