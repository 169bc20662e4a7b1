#pragma once
/// Services that a process keeps until it ends, with threads that serve other processes.

#include <list>
#include <memory>
#include <mutex>

namespace tandem::bootstrap {

/// A child of fork that ends leaves the parent's services alone: their threads do not run in the child, and their data
/// may be in the middle of a change.
template <class T>
class Kept {
 public:
  Kept() = default;
  ~Kept() {
    for (std::unique_ptr<T>& one : all_)
      if (!one->is_here()) static_cast<void>(one.release());
  }
  Kept(const Kept&) = delete;
  Kept& operator=(const Kept&) = delete;

  /// Also removes services that are over.
  void add(std::unique_ptr<T> one) {
    const std::lock_guard lock(mutex_);
    all_.remove_if([](const auto& old) { return old->is_here() && old->is_over(); });
    all_.push_back(std::move(one));
  }

 private:
  std::mutex mutex_;
  std::list<std::unique_ptr<T>> all_;
};

}  // namespace tandem::bootstrap
