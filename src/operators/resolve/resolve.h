#pragma once
/// The function that turns a caller's options into options without an open choice.
///
/// Each option takes its value from the first of these sources that has one (OptionSource):
///   1. caller: the field differs from its open value (the default of OperatorOptions).
///   2. cache:  TANDEM_OPERATOR_CACHE names a file, the caller left all choices open, and every PE found the same
///   entry.
///   3. table:  on GPUs, selected_options and the tiles that were measured best.
///   4. rule:   a closed formula of the machine model, or a default.
/// Two limits hold for all sources. GPUs have two widths of tiles in fp8, and only some GPUs have a GEMM that signals
/// tile by tile. `tandem run --explain` prints each option with its source, and the order of the sources.

#include <vector>

#include "operators/resolve/operator_defaults.h"
#include "tandem/advanced/gemm.h"
#include "tandem/advanced/option_choice.h"
#include "tandem/operators.h"

namespace tandem::ops {

struct ResolvedOptions {
  /// Every choice is made but the order, which stays as the caller or the cache gave it. The form is never kSuitable.
  OperatorOptions options;
  TileOrder order = TileOrder::kOwnFirst;
  /// Runs of up to so many rows take the sequential form, with options of its own. On GPUs these include transport,
  /// chunks and SMs, unless the caller chose the transport. 0 if all runs have one form.
  Size sequential_rows = 0;
  OperatorOptions sequential;
  /// Sequential runs of up to so many rows take tiles of kNarrowFp8TileN columns, whatever the options have.
  Size narrow_rows = 0;
  AllReduceRows all_reduce;
  bool double_buffered = false;  ///< two plans alternate (double_buffered_plan.h)
  std::vector<OptionChoice> choices;
};

/// Throws Unsupported where the world has no fused GEMM of these types, layout and tile.
void check_tile(const World& world, const OperatorOptions& options);

/// Throws InvalidArgument for options that are not allowed (operator_check.h), and Unsupported for tiles that no kernel
/// has. Collective: PEs compare the entries that they found in the tuner's cache.
ResolvedOptions resolve(World& world, Operator op, const OperatorOptions& given);

}  // namespace tandem::ops
