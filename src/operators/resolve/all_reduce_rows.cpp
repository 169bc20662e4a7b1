/// The rows of GEMM + AllReduce up to which other ways than the sequential and the overlapped one are taken.

#include <algorithm>

#include "gemm/contract/skinny.h"
#include "operators/resolve/operator_defaults.h"

namespace tandem::ops {

namespace {

/// Rows up to which there is a kernel whose blocks add up what they computed.
Size skinny(const Place& place, const OperatorOptions& o) {
  // Rows of A and C are whole 16-byte vectors on all PEs, so either all or none of them add in their GEMM.
  constexpr Size kVector = 8;
  const Team& team = place.team;
  if (o.type != DType::kBF16 || o.result_type() != DType::kBF16 || o.b_layout != BLayout::kNxK) return 0;
  if (o.n % kVector != 0 || o.k / team.size < place.table.all_reduce.few_rows_depth) return 0;
  for (int pe = 0; pe < team.size; ++pe)
    if (split(o.k, team.size)[pe].size() % kVector != 0) return 0;
  if (!skinny_fills(kSkinnyBlock, o.n, place.sm_count)) return 0;
  // Without owners every PE sends its rows to all others. Beyond this time, packets behind a whole GEMM are faster
  // (prediction: 24 and 32 rows of 8192 columns on h200x8, 16 rows on h800x8).
  constexpr double kMostSendingUs = 8;
  const double sent = static_cast<double>((team.size - 1) * o.m * o.n * size_of(o.result_type()));
  if (!skinny_has_owners(o.m, team.size) &&
      sent > kMostSendingUs * 1e3 * place.model.link.store_gbps.at(place.sm_count))
    return 0;
  const bool slices = skinny_fills(kSkinnyMost, o.n, place.sm_count);
  return std::min<Size>(o.m, slices ? kSkinnyMost : kSkinnyBlock);
}

/// Rows up to which one shot is the faster one: what it sends hides behind the GEMM.
Size one_shot_rows(const Place& place, const OperatorOptions& o) {
  const OperatorTable::AllReduce& limits = place.table.all_reduce;
  const Machine& model = place.model;
  const int sms = model.gpu.sm_count;
  const int others = place.team.size - 1;
  const Size row_bytes = o.n * size_of(o.result_type());
  const double gbps = model.link.store_gbps.at(sms);
  Size rows = 0;
  for (Size m = 1; m < 2 * o.m && m * row_bytes * others <= limits.one_shot_bytes; m *= 2) {
    const double link_us = static_cast<double>(others * m * row_bytes) / (gbps * 1e3);
    const double gemm_us =
        gemm_alone_us(model, m, o.n, ceil_div(o.k, place.team.size), static_cast<int>(size_of(o.type)), sms);
    if (link_us > limits.one_shot_hidden * gemm_us) break;
    rows = m;
  }
  return rows;
}

}  // namespace

AllReduceRows all_reduce_rows(const Place& place, const OperatorOptions& o) {
  const OperatorTable::AllReduce& limits = place.table.all_reduce;
  const Size row_bytes = o.n * size_of(o.result_type());
  AllReduceRows rows;
  if (!place.team.one_node()) return rows;
  if (place.team.size == 2) {
    // One shot moves as many bytes as two, and its result may be anywhere: a copy less.
    rows.collective_above = limits.two_pes_one_shot_above_bytes / row_bytes;
    rows.collective_one_shot = limits.two_pes_one_shot_bytes / row_bytes;
    rows.collective_blocks = limits.two_pes_one_shot_blocks;
  }
  if (o.form != Form::kOverlapped) return rows;
  // Collectives round the sums that they give, before an activation.
  const bool by_packets = o.shots != 2 && o.activation == Activation::kNone;
  rows.packets = by_packets ? std::min(o.m, limits.packet_bytes / row_bytes) : 0;
  if (place.adds_up_few_rows && o.shots == 0) rows.few = skinny(place, o);
  if (o.shots == 1) rows.one_shot = o.m;
  // On GPUs tiles for all PEs are too few to keep a fused GEMM busy: only where they are asked for.
  if (o.shots == 0 && !place.on_gpus) rows.one_shot = std::min(o.m, one_shot_rows(place, o));
  return rows;
}

}  // namespace tandem::ops
