#pragma once
/// A UniqueId handed to the other processes of a job on this host, through a local socket whose name they all know.

#include <atomic>
#include <string>
#include <thread>

#include "bootstrap/deadline.h"
#include "bootstrap/fd.h"
#include "tandem/unique_id.h"

namespace tandem::bootstrap {

class Offer {
 public:
  /// Hands `id` to `takers` processes of this user, on a thread of its own, until the deadline. Throws RuntimeFailure
  /// where another process offers under that name.
  Offer(const std::string& name, const UniqueId& id, int takers, const Deadline& deadline);
  ~Offer();
  Offer(const Offer&) = delete;
  Offer& operator=(const Offer&) = delete;

  bool is_over() const { return over_; }

 private:
  void run();

  UniqueId id_;
  int takers_;
  Deadline deadline_;
  Fd listener_;
  Fd wake_;
  std::atomic<bool> over_{false};
  std::thread thread_;
};

/// Waits until somebody offers under that name. Throws Timeout; RuntimeFailure where that is another user's process.
UniqueId take_offer(const std::string& name, const Deadline& deadline);

}  // namespace tandem::bootstrap
