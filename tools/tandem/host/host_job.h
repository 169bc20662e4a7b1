#pragma once
/// Runs on the CPUs of this computer.

#include <cstdint>
#include <functional>

#include "tandem/advanced/profile.h"
#include "tools/tandem/data/shared.h"
#include "tools/tandem/run/job_place.h"
#include "tools/tandem/run/pictures.h"
#include "tools/tandem/run/result.h"

namespace tandem::cli {

struct HostJob : JobPlace {
  using OnTimeline = std::function<void(const trace::Timeline&, const ProfileInfo&)>;

  std::uint64_t seed = 1;
  Pictures* pictures = nullptr;  ///< of a run that may be recorded

  /// Calls `program` on every PE of this process, in a new world. Rethrows the first error of any PE. Throws
  /// InvalidArgument where this computer has not `bytes_per_pe` of memory for the data of each PE.
  /// With `on_timeline` it records the PEs, and calls it at the end in the process that speaks.
  void run(double bytes_per_pe, const std::function<void(World&, Shared&)>& program,
           const OnTimeline& on_timeline = nullptr) const;
  /// Returns an `on_timeline` that adds the call's window to the pictures, named by the result's algorithm. Returns
  /// null if none are wanted. The arguments are read at the end of the run.
  OnTimeline to_pictures(const Result& result, const CallWindow& window) const;
  /// Whether this PE keeps what all PEs of this process have found alike.
  bool keeps_result_of(int pe) const { return by_processes || pe == 0; }
  /// Returns the name of this computer for people.
  static std::string machine();
  /// Adds where it ran. `nodes`: those of its world.
  void describe(Result& result, int nodes) const;
};

/// Throws InvalidArgument.
HostJob make_host_job(const Arguments& arguments);

}  // namespace tandem::cli
