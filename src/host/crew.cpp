#include "host/crew.h"

#include <algorithm>
#include <system_error>

namespace tandem::host {

Crew::~Crew() {
  {
    const std::lock_guard lock(mutex_);
    is_over_ = true;
  }
  begun_.notify_all();
  for (std::thread& thread : threads_) thread.join();
}

void Crew::run(int most, const std::function<void(int, int)>& work) {
  grow(most);
  const int parts = std::min(most, static_cast<int>(threads_.size()) + 1);
  if (parts == 1) return work(0, 1);
  {
    const std::lock_guard lock(mutex_);
    work_ = &work;
    parts_ = parts;
    running_ = parts - 1;
    ++rounds_;
  }
  begun_.notify_all();
  work(0, parts);
  std::unique_lock lock(mutex_);
  ended_.wait(lock, [&] { return running_ == 0; });
}

void Crew::grow(int most) {
  try {
    while (static_cast<int>(threads_.size()) + 1 < most)
      threads_.emplace_back([this, part = static_cast<int>(threads_.size()) + 1] { help(part); });
  } catch (const std::system_error&) {
    // The threads that there are do all.
  }
}

void Crew::help(int part) {
  std::unique_lock lock(mutex_);
  std::uint64_t seen = 0;
  for (;;) {
    begun_.wait(lock, [&] { return rounds_ != seen || is_over_; });
    if (is_over_) return;
    seen = rounds_;
    if (part >= parts_) continue;
    const auto& work = *work_;
    const int parts = parts_;
    lock.unlock();
    work(part, parts);
    lock.lock();
    if (--running_ == 0) ended_.notify_one();
  }
}

}  // namespace tandem::host
