#pragma once
/// The port at which the worlds of a job come together, one after the other.

#include <condition_variable>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>

#include "bootstrap/protocol/deadline.h"
#include "bootstrap/rendezvous/host.h"

namespace tandem::bootstrap {

/// Returns the secret of a job's world by its number. That of world 0 is the job's.
Key secret_of_world(const Key& secret, std::uint64_t world);

class JobPort {
 public:
  /// Listens from now on, between the worlds too; port 0: one that the system chooses. Throws as listen_tcp.
  JobPort(const std::string& address, std::uint16_t port, const Key& secret);

  /// Returns the contents of the id of world 0.
  const IdContents& contents() const { return contents_; }
  /// Returns whether no world is coming together.
  bool is_free() const {
    const std::lock_guard lock(kept_->mutex);
    return static_cast<bool>(kept_->listener);
  }
  /// Opens the rendezvous of the next world. The world before has to come together first, or to end. Throws Timeout.
  std::unique_ptr<Host> next(const Deadline& deadline);

 private:
  /// The listener, while no world uses it. A rendezvous may end after this object.
  struct Kept {
    std::mutex mutex;
    std::condition_variable changed;
    Fd listener;
  };

  IdContents contents_;
  std::uint64_t worlds_ = 0;
  std::shared_ptr<Kept> kept_ = std::make_shared<Kept>();
};

}  // namespace tandem::bootstrap
