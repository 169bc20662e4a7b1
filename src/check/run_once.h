#pragma once
/// One schedule of a check.

#include "sim/run/monitor.h"
#include "tandem/check.h"
#include "tandem/error.h"
#include "tandem/timeline.h"

namespace tandem::checker {

/// Thrown by a checked program: the result of a PE is wrong.
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
  std::uint64_t footprint = 0;   ///< what was accessed, see Detector
  std::uint64_t operations = 0;  ///< number of accesses and of tests that were false
};

/// Runs the program once, into `timeline` if there is one, and collects what is found; `faults` may be null. Throws
/// what is no finding: InvalidArgument for options out of range, OutOfMemory, std::bad_alloc.
Outcome run_once(const std::function<void(World&)>& program, const CheckOptions& options, std::uint64_t seed,
                 sim::Schedule& schedule, sim::Faults* faults, trace::Timeline* timeline = nullptr);

/// tandem::check of a program of which something is broken; `faults` may be null.
CheckResult check_broken(const std::function<void(World&)>& program, const CheckOptions& options, sim::Faults* faults);

/// How many points of a program's undisturbed run may be late; strategies but kRandom need it.
std::uint64_t count_points(const std::function<void(World&)>& program, const CheckOptions& options);

}  // namespace tandem::checker
