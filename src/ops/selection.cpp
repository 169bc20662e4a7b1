/// Which form of an operator is used where nobody chose: what was measured best on two H200s (bench/NOTES.md).

#include <algorithm>

#include "ops/operator_defaults.h"

namespace tandem {

namespace {

/// Up to so many rows an all-reduce by packets behind a whole GEMM is the fastest: tiles of a GEMM with hooks would be
/// mostly empty.
constexpr Size kMostDecodeRows = 256;
/// Up to so many waves of tiles the chain's copies cost more time than the GEMM's own stores to the previous PE hold it
/// up.
constexpr Size kMostWavesOfStores = 2;
constexpr int kTileM = 128, kTileN = 256;

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
      options.splits = 1;
      break;
    case Operator::kGemmReduceScatter: {
      const Size wave = std::max(1, world.machine().gpu.sm_count);
      const bool few = ceil_div(m, kTileM) * ceil_div(n, kTileN) <= kMostWavesOfStores * wave;
      options.reduction = Reduction::kChain;
      options.copy_by = few ? CopyBy::kSm : CopyBy::kCopyEngine;
      options.splits = 2;
      break;
    }
    case Operator::kGemmAllReduce:
      options.form = m <= kMostDecodeRows ? Form::kSequential : Form::kOverlapped;
      options.reduction = Reduction::kChain;
      options.copy_by = CopyBy::kCopyEngine;
      options.splits = 4;
      break;
  }
  return options;
}

namespace ops {

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
  return o;
}

}  // namespace ops

}  // namespace tandem
