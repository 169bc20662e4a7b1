#pragma once
/// Estimates of the times of an operator's forms, from which the rules choose. `predicted` figures come from the
/// machine model, `measured` ones from the figures of GPUs in the operator table.

#include <algorithm>

#include "operators/resolve/operator_defaults.h"

namespace tandem::ops {

/// A PE's part of a problem with `m` rows, as tiles. All times are in microseconds.
class FormTimes {
 public:
  FormTimes(const Place& place, Operator op, const OperatorOptions& o, Size m)
      : op_(op), o_(o), table_(place.table), model_(place.model), team_(place.team), pes_(place.team.size), m_(m) {
    const bool gather = op == Operator::kAllGatherGemm;
    n_ = gather ? ceil_div(o.n, pes_) : o.n;
    k_ = gather ? o.k : ceil_div(o.k, pes_);
    columns_ = ceil_div(n_, o.tile_n);
  }

  Size tiles() const { return ceil_div(m_, o_.tile_m) * columns_; }
  /// Panels do not straddle pieces, whose last ones are filled up to `rows_at_once`, a panel's rows or a multiple.
  Size tiles_of_chunks(int splits, int rows_at_once) const {
    const RowPartition rows = partition(splits);
    Size panels = 0;
    for (int owner = 0; owner < pes_; ++owner)
      for (int part = 0; part < splits; ++part) panels += ceil_div(rows.part(owner, part).size(), rows_at_once);
    panels *= rows_at_once / o_.tile_m;
    return panels * columns_;
  }
  /// `passes`: chunks of rows that are computed one after the other.
  double gemm_us(Size tiles, int sms, int passes = 1) const {
    const GemmShape shape{m_, n_, k_, static_cast<int>(size_of(o_.type)), passes};
    // The time is that of whole waves, because pieces end in the middle of one.
    return gemm_tile_times(model_, o_.tile_m, o_.tile_n, shape, sms).whole_us *
           static_cast<double>(ceil_div(tiles, Size{sms}));
  }
  /// Returns the bytes of A, or of the sums.
  double moved_bytes() const {
    const bool gather = op_ == Operator::kAllGatherGemm;
    return static_cast<double>(m_ * (gather ? o_.k * size_of(o_.type) : o_.n * size_of(o_.result_type())));
  }
  /// Returns the time of the whole collective with its additions, by the mover of the bytes.
  double collective_us(CopyBy by) const {
    const double within = moved_bytes() * (team_.node_size - 1) / team_.node_size / bytes_per_us(by);
    const double bytes_us = within * (op_ == Operator::kGemmAllReduce ? 2 : 1);
    const double starts_us = by == CopyBy::kCopyEngine ? copies() * model_.gpu.copy_engine_startup_us : 0;
    return table_.predicted.collective_us + std::max(bytes_us, starts_us) + nic_us();
  }

  /// Returns the sequential form's time. SMs add up the sums of all in symmetric memory, from where they are copied.
  double sequential_us(int sms) const {
    const bool all = op_ == Operator::kGemmAllReduce;
    const double copied_us = all ? moved_bytes() / (model_.gpu.copy_engine_local_gbps * 1e3) : 0;
    return gemm_us(tiles(), sms) + collective_us(all ? CopyBy::kSm : *o_.copy_by) + copied_us;
  }
  /// Returns the overlapped form's time. With copies nothing leaves before the first wave of tiles is done. The last
  /// shard that arrives or leaves has nothing beside it.
  double overlapped_us(int sms) const {
    const double gemm = gemm_us(tiles_of_chunks(o_.splits, o_.tile_m), sms, chunks());
    const double collective = collective_us(*o_.copy_by);
    if (op_ == Operator::kAllGatherGemm && !team_.one_node()) {
      // Rows of other nodes arrive late and close together, so most waves of tiles follow them. A shard that does not
      // fill its tiles costs more waves than the whole. (Fitted to the simulator, h100x8-rail, 2 and 4 nodes.)
      const OperatorTable::Predicted& costs = table_.predicted;
      const double spread = collective - costs.collective_us - model_.nic.latency_us;
      return gemm + collective - costs.start_between_nodes_us - costs.hidden_share_between_nodes * spread;
    }
    const double side_by_side = std::max(gemm, collective) + collective / pes_;
    if (op_ == Operator::kAllGatherGemm) return side_by_side;
    if (*o_.copy_by == CopyBy::kSm) return side_by_side + table_.predicted.stored_us;
    const double after_a_wave = std::max(gemm, gemm_us(1, sms, chunks()) + collective);
    if (op_ == Operator::kGemmReduceScatter) return after_a_wave + table_.predicted.copied_us;
    // The sums of a shard's last piece have nothing beside them.
    const double last = collective * largest_piece();
    const double there_and_back =
        after_a_wave + (o_.reduction == Reduction::kChain ? 0 : last / pes_) + table_.predicted.copied_twice_us;
    // Between many PEs little of them hides behind the GEMM (fitted to the simulator, 1024 to 65536 rows on h200x8).
    const bool is_shown = pes_ > table_.predicted.few_pes && model_.link.fabric == Fabric::kSwitched;
    return is_shown ? std::max(there_and_back, gemm + table_.predicted.shown_share * last + table_.predicted.shown_us)
                    : there_and_back;
  }

  double measured_collective_us() const {
    const double bytes = moved_bytes() * (pes_ - 1) / pes_;
    if (scatters_to_more()) return table_.measured.scatter_us + bytes / table_.measured.scatter_bytes_per_us;
    return table_.measured.collective_us +
           bytes / table_.measured.collective_bytes_per_us * (op_ == Operator::kGemmAllReduce ? 2 : 1);
  }
  double measured_sequential_us() const {
    return gemm_alone_us(model_, m_, n_, k_, static_cast<int>(size_of(o_.type)), model_.gpu.sm_count) +
           measured_collective_us();
  }
  /// The last wave of tiles cannot start before all data has arrived. Between more than two PEs, all-reduced sums are
  /// fetched when most of that is done.
  double measured_overlapped_us(int sms) const {
    const bool fetched_after = op_ == Operator::kGemmAllReduce && pes_ > 2;
    const double beside = measured_collective_us() / (fetched_after ? 2 : 1);
    // Two blocks compute tiles below each other: of a piece with less than two panels, one of them computes nothing.
    const int rows_at_once = (scatters_to_more() ? 2 : 1) * o_.tile_m;
    const double gemm =
        std::max(gemm_us(tiles_of_chunks(o_.splits, rows_at_once), sms, chunks()), beside + gemm_us(1, sms, chunks()));
    if (op_ == Operator::kAllGatherGemm) return gemm + table_.measured.gather_us;
    if (fetched_after) return gemm + table_.measured.fetch_us + measured_collective_us() / 2;
    if (scatters_to_more()) return gemm + table_.measured.scatter_chain_us;
    return gemm + table_.measured.chain_us + (op_ == Operator::kGemmAllReduce ? measured_collective_us() / 2 : 0);
  }

 private:
  /// Returns the rate of a PE that sends to all others of its node, or of a ring in which SMs add up the sums.
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
    // The bridge carries the bytes that a socket's PEs send to the PEs of the other sockets.
    const int beside = std::clamp(model_.pes_per_node / link.numa_nodes, 1, team_.node_size);
    const int beyond = team_.node_size - beside;
    return beyond == 0 ? 1e3 * one : 1e3 * std::min(one, link.bridge_gbps * peers / (beside * beyond));
  }
  /// Returns the time of a PE's sums or rows to the PEs on its rail; 0 on one node or without NICs.
  double nic_us() const {
    if (team_.one_node() || model_.nic.gbps <= 0) return 0;
    return model_.nic.latency_us + moved_bytes() / pes_ * (team_.nodes() - 1) / (model_.nic.gbps * 1e3);
  }
  /// Returns the number of copies that a PE's copy engine starts for a call.
  int copies() const { return (pes_ - 1) * o_.splits * (op_ == Operator::kGemmAllReduce ? 2 : 1); }
  /// Returns the number of chunks with rows.
  int chunks() const {
    const RowPartition rows = partition(o_.splits);
    int count = 0;
    for (int owner = 0; owner < pes_; ++owner)
      for (int part = 0; part < o_.splits; ++part)
        if (!rows.part(owner, part).empty()) ++count;
    return count;
  }
  /// Returns the share of a shard's rows that its largest piece has.
  double largest_piece() const {
    const RowPartition rows = partition(o_.splits);
    return static_cast<double>(rows.part(0, 0).size()) / static_cast<double>(rows.shard(0).size());
  }
  RowPartition partition(int splits) const { return {m_, pes_, splits, 2 * o_.tile_m}; }  // see Settings::rows
  bool scatters_to_more() const { return op_ == Operator::kGemmReduceScatter && pes_ > 2; }

  Operator op_;
  const OperatorOptions& o_;
  const OperatorTable& table_;
  const Machine& model_;
  const Team& team_;
  int pes_;
  Size m_, n_ = 0, k_ = 0, columns_ = 0;
};

}  // namespace tandem::ops
