#pragma once
/// The recording of a world's work, from which timelines are made. Devices that can record implement it.

#include <functional>
#include <string>
#include <vector>

#include "tandem/advanced/profile.h"
#include "trace/gpu/gpu_part.h"
#include "trace/gpu/gpu_profile.h"
#include "world/device/stream.h"

namespace tandem::world {

/// The questions that a recording asks about addresses in symmetric memory.
struct AddressBook {
  std::function<trace::GpuPlace(std::uint64_t)> place;
  std::function<std::string(std::uint64_t)> describe;  ///< "arrived[3] on PE 2"
};

/// The parts of a PE that the comparison of clocks needs.
struct ClockPe {
  int device = 0;
  int clock = 0;                   ///< PEs with the same number read one clock
  DeviceStream* stream = nullptr;  ///< null: the PE is another process's
  std::byte* mail = nullptr;       ///< Devices::clock_mail_bytes, in memory that the PEs of its host reach
  bool is_far = false;             ///< the PE is on another host than PE 0
};

struct ProfilerSetup {
  std::vector<ClockPe> pes;
  ProfileOptions options;
  std::string machine;
  AddressBook book;
  /// Waits for the processes of all PEs, if there are several.
  std::function<void()> meet;
  /// Returns the number that each PE's process gives; null: there is one process. Collective.
  std::function<std::vector<std::uint64_t>(std::uint64_t)> numbers;
  /// Returns, by PE, the clock of its host minus that of PE 0's; PE 0 gets the errors too. Null: there is one host.
  /// Collective.
  std::function<std::vector<trace::ClockOffset>()> compare_hosts;
};

/// A recording that host programs of several PEs use in parallel, each for its own PE. `align` and `timeline` are
/// called while nothing runs.
class Profiler {
 public:
  virtual ~Profiler() = default;

  /// Whether a PE's work is recorded; it is from the start.
  virtual void turn(int pe, bool on) = 0;
  /// Compares all clocks: before and after a run.
  virtual void align() = 0;
  /// The work of this process's PEs; the caller adds addresses and names.
  virtual trace::GpuPart part() const = 0;
  /// Adds the work of other processes' PEs to the timeline.
  virtual void add(std::vector<trace::GpuPart> parts) = 0;
  /// The timeline up to the last `align`; work in graphs that were replayed has the times of the last replay.
  virtual const trace::Timeline& timeline() = 0;
  virtual const ProfileInfo& info() = 0;
  /// Microseconds since this recording began: times of its timeline.
  virtual double time_us() const = 0;
};

}  // namespace tandem::world
