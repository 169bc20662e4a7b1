#include "operators/resolve/operator_defaults.h"

#include <algorithm>

#include "operators/resolve/form_times.h"
#include "operators/resolve/operator_check.h"

namespace tandem::ops {

namespace {

/// All-reduced pieces travel twice, so each has half a wave or more. In a mesh all shards arrive at the same time, each
/// by its own link. There only pieces let a GEMM start before all of them are there. Rows that are normed first leave
/// in pieces where the link is late, so that it need not wait for the last of them. Between more PEs than two, pieces
/// are many copies, whose starts take longer.
int splits_on_a_node(const Place& place, Operator op, const OperatorOptions& o, const FormTimes& times) {
  if (op == Operator::kAllGatherGemm) {
    if (place.model.link.fabric == Fabric::kFullMesh) return kMostSplits;
    constexpr int kFewPes = 2, kNormedSplits = 4;
    const bool is_late = times.collective_us(CopyBy::kCopyEngine) > times.gemm_us(times.tiles(), place.sm_count);
    return o.norm.any() && place.team.size == kFewPes && is_late ? kNormedSplits : 1;
  }
  if (op != Operator::kGemmAllReduce) return 1;
  return static_cast<int>(
      std::clamp<Size>(2 * times.tiles() / place.team.size / place.model.gpu.sm_count, 1, kMostSplits));
}

/// Returns the fewest blocks that get 95% of the curve's rate at all SMs, for each link that a PE drives.
int blocks_to_saturate(const Machine& machine, const Curve& curve, int peers) {
  const int links = machine.link.fabric == Fabric::kFullMesh ? std::max(1, peers) : 1;
  int blocks = 1;
  while (blocks < machine.gpu.sm_count && curve.at(blocks) < 0.95 * curve.at(machine.gpu.sm_count)) ++blocks;
  return std::min(blocks * links, machine.gpu.sm_count / 2);
}

}  // namespace

Machine planning_model(const Machine& machine) {
  if (!machine.gemm.tiles.empty()) return machine;
  Machine model = load_machine(machine.name.find("H100") != std::string::npos ? "h100x8" : "h200x8");
  model.gpu.sm_count = machine.gpu.sm_count;
  return model;
}

Reduction suitable_reduction(const Place& place, Operator op) {
  constexpr int kShortChain = 2;
  const bool ring = op == Operator::kGemmAllReduce && place.team.one_node() && place.team.size == kShortChain;
  return ring ? Reduction::kChain : Reduction::kOwner;
}

int suitable_splits(const Place& place, Operator op, const OperatorOptions& o) {
  if (!place.team.one_node()) return 1;
  return splits_on_a_node(place, op, o, FormTimes(place, op, o, std::max<Size>(o.m, 1)));
}

CopyBy suitable_mover(const Place& place, Operator op, const OperatorOptions& o) {
  const OperatorTable::Predicted& limits = place.table.predicted;
  const Fabric fabric = place.model.link.fabric;
  const bool one_node = place.team.one_node();
  if (op == Operator::kGemmAllReduce) return CopyBy::kCopyEngine;
  // The GEMM's own stores are preferred, because nothing has to start when a chunk is complete. Between nodes, fewer
  // rows than PEs need few copies.
  if (op == Operator::kGemmReduceScatter) {
    const bool has_few_copies = !one_node && o.m < place.team.size;
    return has_few_copies || fabric == Fabric::kFullMesh ? CopyBy::kCopyEngine : CopyBy::kSm;
  }
  const Size shard = ceil_div(o.m, place.team.size) * o.k * size_of(o.type);
  if (shard <= limits.small_shard_bytes) return CopyBy::kSm;
  // Rows of other nodes are forwarded to the whole node: many copies, each with a start of its own.
  const bool has_many_copies = !one_node || (fabric == Fabric::kSwitched && place.team.size > limits.few_pes &&
                                             shard <= limits.large_shard_bytes);
  if (!has_many_copies) return CopyBy::kCopyEngine;
  const FormTimes times(place, op, o, std::max<Size>(o.m, 1));
  const bool is_late = times.collective_us(CopyBy::kSm) > times.gemm_us(times.tiles(), place.model.gpu.sm_count);
  return is_late ? CopyBy::kSm : CopyBy::kCopyEngine;
}

int suitable_communication_sms(const Place& place, Operator op, const OperatorOptions& o) {
  const Machine& model = place.model;
  const Team& team = place.team;
  const int sm_count = model.gpu.sm_count;
  if (op == Operator::kAllGatherGemm) {
    const Curve& curve = o.direction == Direction::kPush ? model.link.store_gbps : model.link.load_gbps;
    return o.copy_by == CopyBy::kSm ? std::max(1, blocks_to_saturate(model, curve, team.node_size - 1)) : 0;
  }
  if (op == Operator::kGemmAllReduce && team.one_node() && o.reduction == Reduction::kOwner) {
    // The owners add up beside the GEMM. They get more SMs if the link takes longer than the GEMM.
    const FormTimes times(place, op, o, std::max<Size>(o.m, 1));
    const bool is_late = times.collective_us(CopyBy::kCopyEngine) > times.gemm_us(times.tiles(), sm_count);
    return std::max(1, is_late ? 3 * sm_count / 16 : sm_count / 8);
  }
  // Between nodes the reduction feeds the NIC while the GEMM runs; on one node all SMs reduce when the GEMM is done.
  return team.one_node() || o.reduction == Reduction::kChain ? 0 : std::min(8, sm_count / 2);
}

void choose_sequential_transport(const Place& place, Operator op, OperatorOptions& options) {
  options.copy_by = CopyBy::kSm;
  options.splits = 1;
  options.communication_sms =
      op == Operator::kAllGatherGemm ? std::min(place.table.gather.sequential_sms, std::max(1, place.sm_count / 2)) : 0;
}

Size sequential_rows(const Place& place, Operator op, const OperatorOptions& o) {
  const Team& team = place.team;
  if (team.size == 1) return 0;
  // Between nodes GEMM + AllReduce has only one form.
  if (!team.one_node() && op == Operator::kGemmAllReduce) return 0;
  const int sms = place.model.gpu.sm_count;
  const int gemm_sms = std::max(1, sms - std::max(0, o.communication_sms));
  const bool by_measurements = place.on_gpus && team.one_node();
  // An estimated gain below this may be a loss: GEMM+AllReduce of 1024x28672x4096 on h100x8 was 4 % slower instead of
  // 0.5 % faster (prediction). Between nodes the estimates are coarser.
  constexpr double kLeastGainOnANode = 1.01;
  const double least_gain = team.one_node() ? kLeastGainOnANode : place.table.predicted.least_gain;
  const auto is_overlapped = [&](Size m) {
    const FormTimes times(place, op, o, m);
    return by_measurements ? times.measured_sequential_us() >= times.measured_overlapped_us(gemm_sms)
                           : times.sequential_us(sms) >= least_gain * times.overlapped_us(gemm_sms);
  };
  // The rows that the plan is for count the most. The rule of GPUs was checked by measurements without this step.
  if (!by_measurements && o.m > 0 && !is_overlapped(o.m)) return o.m;
  Size rows = 0;
  for (Size m = std::min<Size>(o.tile_m, o.m); m > rows && m <= o.m; m = std::min<Size>(2 * m, o.m)) {
    if (is_overlapped(m)) break;
    rows = m;
  }
  return rows;
}

}  // namespace tandem::ops
