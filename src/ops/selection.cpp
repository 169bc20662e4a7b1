/// Which form of an operator is used where nobody chose: what was measured best on two H200s (bench/NOTES.md).

#include "tandem/operators.h"

namespace tandem {

namespace {

/// Up to so many rows an all-reduce by packets behind a whole GEMM is the fastest: tiles of a GEMM with hooks would be
/// mostly empty.
constexpr Size kMostDecodeRows = 256;
/// Up to so many rows the chain's copies cost more time than the GEMM's own stores to the previous PE hold it up.
constexpr Size kMostRowsOfStores = 1024;
constexpr int kTileN = 256;

}  // namespace

OperatorOptions selected_options(const World& world, Operator op, Size m, Size n, Size k, DType type) {
  OperatorOptions options;
  options.m = m;
  options.n = n;
  options.k = k;
  options.type = type;
  options.tile_n = kTileN;
  if (!world.team().one_node()) {
    if (op == Operator::kGemmAllReduce) options.form = Form::kSequential;
    return options;
  }
  switch (op) {
    case Operator::kAllGatherGemm:
      options.splits = 1;
      break;
    case Operator::kGemmReduceScatter:
      options.reduction = Reduction::kChain;
      options.copy_by = m <= kMostRowsOfStores ? CopyBy::kSm : CopyBy::kCopyEngine;
      options.splits = m <= kMostRowsOfStores ? 4 : 2;
      break;
    case Operator::kGemmAllReduce:
      options.form = m <= kMostDecodeRows ? Form::kSequential : Form::kOverlapped;
      options.splits = 4;
      break;
  }
  return options;
}

}  // namespace tandem
