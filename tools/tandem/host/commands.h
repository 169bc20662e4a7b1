#pragma once
/// The commands with --backend host. Where a launcher started several processes, all call them, and PE 0's prints.

#include <vector>

#include "tandem/advanced/operator_tuning.h"
#include "tools/tandem/run/run_operator.h"
#include "tools/tandem/run/run_options.h"
#include "tools/tandem/tune/tune.h"
#include "tools/tandem/tune/tune_options.h"

namespace tandem::cli {

int run_on_host(const RunOptions& arguments);

/// All sweeps of `tandem tune`; none in a process that leaves the table to another one.
std::vector<Sweep> tune_on_host(const TuneOptions& arguments);

/// Returns the most blocks of candidates. The threads of a grid share its blocks. Two for each thread let one go on
/// while another waits, and more of them add signals.
int most_tuned_blocks(int pes);

/// How `tandem tune` tries an operator.
OperatorTuneSetup operator_tune_on_host(const TuneOptions& arguments, const OperatorRun& run);

}  // namespace tandem::cli
