#pragma once
/// The timeline of a schedule with a finding.

#include "tools/tandem/check/check_cases.h"

namespace tandem::cli {

/// Runs the schedule of `seed` again and draws it. Both sites of each finding are marked on lanes of their own.
/// `faults` is the fault of the original run; null: none.
void write_check_report(const std::string& path, const CheckCase& one, const CheckOptions& options, std::uint64_t seed,
                        sim::Faults* faults = nullptr);

}  // namespace tandem::cli
