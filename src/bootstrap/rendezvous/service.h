#pragma once
/// A thread that waits in poll(2) until it is asked to end.

#include <sys/eventfd.h>
#include <unistd.h>

#include <atomic>
#include <memory>
#include <thread>
#include <utility>

#include "bootstrap/protocol/socket.h"

namespace tandem::bootstrap {

/// A service belongs to the process that made it. A child of fork has the object and its descriptors, but no thread.
class Service {
 public:
  Service() : wake_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {
    if (!wake_) throw_errno("eventfd");
  }
  ~Service() {
    stop();
    if (is_own_process()) std::destroy_at(&thread_);
  }
  Service(const Service&) = delete;
  Service& operator=(const Service&) = delete;

  template <class Work>
  void start(Work work) {
    thread_ = std::thread(std::move(work));
  }
  /// Waits for the thread's end. In a child of fork it does nothing, because it would wake the parent's thread.
  void stop() {
    if (!is_own_process() || !thread_.joinable()) return;
    stopping_ = true;
    wake_up();
    thread_.join();
  }

  /// Makes the thread's poll return.
  void wake_up() { ::eventfd_write(wake_.get(), 1); }

  bool is_own_process() const { return process_ == ::getpid(); }
  /// A descriptor that the thread polls for reading besides its own.
  int wake() const { return wake_.get(); }
  /// Returns whether the thread has to end. Any other wake-up is read away, or every later poll would return at once.
  /// It may come from a child of fork, which has the descriptor, too.
  bool is_stopping() {
    eventfd_t written = 0;
    if (!stopping_) ::eventfd_read(wake_.get(), &written);
    return stopping_;
  }

 private:
  pid_t process_ = ::getpid();
  Fd wake_;
  std::atomic<bool> stopping_{false};
  union {  // not destroyed in a child, where it is joinable without a thread
    std::thread thread_{};
  };
};

}  // namespace tandem::bootstrap
