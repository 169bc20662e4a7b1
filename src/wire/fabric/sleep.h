#pragma once
/// The sleep of a thread that looks for work, and its end by another thread.

#include <atomic>
#include <cstdint>
#include <initializer_list>

#include "bootstrap/protocol/fd.h"

namespace tandem::wire {

class Sleep {
 public:
  Sleep();

  /// Blocks until one of the descriptors is readable or `wake` is called, for `ms` at most. It returns at once if one
  /// of them is -1.
  void wait(std::initializer_list<int> descriptors, int ms);
  /// Makes no call to the system unless the other thread sleeps. A wait that begins later ends at once. Any thread may
  /// call it.
  void wake();

 private:
  enum class Rest : std::uint8_t { kNone, kAsleep, kWoken };
  std::atomic<Rest> rest_{Rest::kNone};
  bootstrap::Fd woken_;
};

}  // namespace tandem::wire
