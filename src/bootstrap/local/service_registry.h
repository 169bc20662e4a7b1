#pragma once
/// Services with threads for other processes, which live until this process ends.

#include <list>
#include <memory>
#include <mutex>

namespace tandem::bootstrap {

/// A child of fork that ends does not touch the parent's services. Their threads do not run in the child, and their
/// data may be inconsistent there.
template <class T>
class ServiceRegistry {
 public:
  ServiceRegistry() = default;
  ~ServiceRegistry() {
    for (std::unique_ptr<T>& one : all_)
      if (!one->is_own_process()) static_cast<void>(one.release());
  }
  ServiceRegistry(const ServiceRegistry&) = delete;
  ServiceRegistry& operator=(const ServiceRegistry&) = delete;

  /// Adds a service and removes services that are over.
  void add(std::unique_ptr<T> one) {
    const std::lock_guard lock(mutex_);
    all_.remove_if([](const auto& old) { return old->is_own_process() && old->is_over(); });
    all_.push_back(std::move(one));
  }

 private:
  std::mutex mutex_;
  std::list<std::unique_ptr<T>> all_;
};

}  // namespace tandem::bootstrap
