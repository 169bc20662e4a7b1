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

/// It belongs to the process that made it: a child of fork has the object and its descriptors, and not the thread.
class Service {
 public:
  Service() : wake_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {
    if (!wake_) throw_errno("eventfd");
  }
  ~Service() {
    stop();
    if (is_here()) std::destroy_at(&thread_);
  }
  Service(const Service&) = delete;
  Service& operator=(const Service&) = delete;

  template <class Work>
  void start(Work work) {
    thread_ = std::thread(std::move(work));
  }
  /// Waits for the thread's end. Does nothing in a child of fork, where the parent's thread would be woken.
  void stop() {
    if (!is_here() || !thread_.joinable()) return;
    stopping_ = true;
    wake_up();
    thread_.join();
  }

  /// Lets the thread's poll return.
  void wake_up() { ::eventfd_write(wake_.get(), 1); }

  bool is_here() const { return process_ == ::getpid(); }
  /// A descriptor that the thread polls for reading beside its own.
  int wake() const { return wake_.get(); }
  /// Whether the thread is to end. Any other wake is read, or every later poll would return at once. (It may also be
  /// that of a child of fork, which has the descriptor.)
  bool is_stopping() {
    eventfd_t written = 0;
    if (!stopping_) ::eventfd_read(wake_.get(), &written);
    return stopping_;
  }

 private:
  pid_t process_ = ::getpid();
  Fd wake_;
  std::atomic<bool> stopping_{false};
  union {  // not destroyed where it would be joinable and nobody's
    std::thread thread_{};
  };
};

}  // namespace tandem::bootstrap
