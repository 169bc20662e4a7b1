#pragma once
/// The timeline of a schedule that found something.

#include "tools/tandem/check/check_cases.h"

namespace tandem::cli {

/// Runs the schedule of `seed` again and draws it, both sites of each finding marked on lanes of their own. `faults` as
/// it was when it was found; null: nothing was broken.
void write_check_report(const std::string& path, const CheckCase& one, const CheckOptions& options, std::uint64_t seed,
                        sim::Faults* faults = nullptr);

}  // namespace tandem::cli
