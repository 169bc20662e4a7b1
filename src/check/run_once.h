#pragma once
/// One schedule of a check.

#include "sim/monitor.h"
#include "tandem/check.h"
#include "tandem/error.h"

namespace tandem::checker {

/// Thrown by a checked program: its result is wrong.
class WrongResult : public CheckFailed {
 public:
  using CheckFailed::CheckFailed;
};

struct Outcome {
  std::vector<Finding> findings;
  std::uint64_t trace_hash = 0;
  std::uint64_t footprint = 0;  ///< what was accessed, see Detector
};

/// Runs the program once and collects what is found; `faults` may be null. Throws what is no finding: InvalidArgument,
/// Unsupported, OutOfMemory.
Outcome run_once(const std::function<void(World&)>& program, const CheckOptions& options, std::uint64_t seed,
                 sim::Schedule& schedule, sim::Faults* faults);

}  // namespace tandem::checker
