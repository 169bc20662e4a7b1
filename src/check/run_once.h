#pragma once
/// One schedule of a check.

#include "sim/run/monitor.h"
#include "tandem/check.h"
#include "tandem/error.h"
#include "tandem/timeline.h"

namespace tandem::checker {

/// The exception of a checked program for a wrong result of a PE.
class WrongResult : public CheckFailed {
 public:
  WrongResult(int pe, const std::string& what) : CheckFailed(what), pe_(pe) {}
  int pe() const { return pe_; }

 private:
  int pe_;
};

struct Outcome {
  std::vector<Finding> findings;
  std::uint64_t trace_hash = 0;
  std::uint64_t footprint = 0;   ///< hash over all accesses, see Detector
  std::uint64_t operations = 0;  ///< number of accesses and of tests that were false
};

/// Runs the program once, records it in `timeline` if that is given, and collects the findings; `faults` may be null.
/// Throws errors that are no findings: InvalidArgument for options out of range, OutOfMemory, std::bad_alloc.
Outcome run_once(const std::function<void(World&)>& program, const CheckOptions& options, std::uint64_t seed,
                 sim::Schedule& schedule, sim::Faults* faults, trace::Timeline* timeline = nullptr);

/// Runs tandem::check on a program with broken operations; `faults` may be null.
CheckResult check_broken(const std::function<void(World&)>& program, const CheckOptions& options, sim::Faults* faults);

/// Returns the number of points of a program's undisturbed run that may be late. All strategies except kRandom need it.
std::uint64_t count_points(const std::function<void(World&)>& program, const CheckOptions& options);

}  // namespace tandem::checker
