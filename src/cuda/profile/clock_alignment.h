#pragma once
/// The comparison of the clocks of a world's GPUs and of the host.

#include <chrono>
#include <functional>
#include <vector>

#include "base/cuda_names.h"
#include "cuda/profile/clock_kernels.h"
#include "trace/gpu/clock_alignment.h"

namespace tandem::cuda {

/// A PE's part in the comparison.
struct ClockPe {
  int device = 0;
  int clock = 0;                  ///< of its GPU; PEs of one GPU have the same number
  cudaStream_t stream = nullptr;  ///< null: the PE is another process's
  Mail* mail = nullptr;           ///< one, in memory that the PEs of its host reach
  bool is_far = false;            ///< the PE is on another host than PE 0
};

/// The parts of a world of processes that the comparison of their clocks needs.
struct ClockMeetings {
  /// Waits for all PEs' processes; null: there is one.
  std::function<void()> meet = {};
  /// Returns the number that each PE's process gives.
  std::function<std::vector<std::uint64_t>(std::uint64_t)> numbers = {};
  /// Returns, by PE, the clock of its host minus that of PE 0's; null: there is one host.
  std::function<std::vector<trace::ClockOffset>()> compare_hosts = {};
};

/// Resolution of the GPUs' timer as measured on H200 (docs/reference/timeline.md), nanoseconds.
inline constexpr double kTimerStepNs = 32;

class Clocks {
 public:
  /// If there are several processes, the process of PE 0 knows the offsets.
  explicit Clocks(std::vector<ClockPe> pes, ClockMeetings meetings = {});
  ~Clocks();
  Clocks(const Clocks&) = delete;
  Clocks& operator=(const Clocks&) = delete;

  /// Takes some milliseconds for each GPU; nothing else may run. The first call is before a run, the next one after it.
  /// Throws Timeout if a GPU does not answer.
  void align();

  /// Returns, by PE, the map from its GPU's clock to PE 0's.
  std::vector<trace::ClockMap> maps() const;
  /// Returns the map from PE 0's clock to the host's.
  trace::ClockMap host() const;
  /// Returns the time of the construction, by the host's clock.
  std::int64_t began() const { return began_; }
  double time_us() const { return static_cast<double>(now() - began_) / 1000; }
  /// Returns the least time that a message takes from one GPU to another, in nanoseconds.
  std::int64_t least_delay() const;

 private:
  struct Pair {
    trace::ClockOffset first, last;
  };

  static std::int64_t now() {
    return std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::steady_clock::now().time_since_epoch())
        .count();
  }
  bool has_own_clock(std::size_t pe) const { return pes_[pe].clock != pes_.front().clock; }
  trace::ClockOffset with_peer(const ClockPe& peer);
  trace::ClockOffset with_host(const ClockPe& own);
  void compare_far(const trace::ClockOffset& own);
  void set(Pair& pair, const trace::ClockOffset& offset) const;

  std::vector<ClockPe> pes_;
  ClockMeetings meetings_;
  std::int64_t began_;
  trace::Exchange* exchanges_ = nullptr;  // pinned
  HostMail* host_mail_ = nullptr;         // pinned
  std::uint32_t number_ = 0;              // of the last exchange
  bool aligned_ = false;
  std::vector<Pair> offsets_;  // by PE
  Pair host_;
};

}  // namespace tandem::cuda
