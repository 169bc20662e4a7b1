#pragma once
/// A UniqueId handed to the other processes of a job on this host, through a local socket whose name they all know.

#include <atomic>
#include <string>

#include "bootstrap/deadline.h"
#include "bootstrap/fd.h"
#include "bootstrap/service.h"
#include "tandem/unique_id.h"

namespace tandem::bootstrap {

class Offer {
 public:
  /// Hands `id` to `takers` processes of this user, on a thread of its own, until the deadline. Throws RuntimeFailure
  /// where another process offers under that name.
  Offer(const std::string& name, const UniqueId& id, int takers, const Deadline& deadline);
  ~Offer() { service_.stop(); }
  Offer(const Offer&) = delete;
  Offer& operator=(const Offer&) = delete;

  bool is_over() const { return over_; }
  /// It is this process's, not that of which this is a child.
  bool is_here() const { return service_.is_here(); }

 private:
  void run();

  UniqueId id_;
  int takers_;
  Deadline deadline_;
  Fd listener_;
  std::atomic<bool> over_{false};
  Service service_;
};

/// Waits until somebody offers under that name. Throws Timeout; RuntimeFailure where that is another user's process.
UniqueId take_offer(const std::string& name, const Deadline& deadline);

}  // namespace tandem::bootstrap
