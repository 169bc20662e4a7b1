#include "cli/progress.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>

namespace tandem::cli {

Progress::Progress(int steps) : steps_(std::max(1, steps)) {
  if (::isatty(STDERR_FILENO) != 0) drawer_ = std::thread([this] { draw_until_done(); });
}

Progress::~Progress() {
  {
    const std::lock_guard lock(mutex_);
    done_ = true;
  }
  changed_.notify_all();
  if (drawer_.joinable()) drawer_.join();
}

void Progress::step(const std::string& what) {
  const std::lock_guard lock(mutex_);
  ++begun_;
  what_ = what;
}

void Progress::draw_until_done() {
  using Clock = std::chrono::steady_clock;
  constexpr auto patience = std::chrono::seconds(2);
  constexpr auto period = std::chrono::milliseconds(200);
  constexpr int width = 30;
  const auto begin = Clock::now();
  std::unique_lock lock(mutex_);
  if (changed_.wait_for(lock, patience, [this] { return done_; })) return;
  while (!done_) {
    const int filled = std::min(width, width * std::max(0, begun_ - 1) / steps_);
    const auto seconds = std::chrono::duration_cast<std::chrono::seconds>(Clock::now() - begin).count();
    fmt::print(stderr, "\r\033[K[{:#<{}}{:.<{}}] {}/{} {} s  {}", "", filled, "", width - filled, begun_, steps_,
               seconds, what_);
    std::fflush(stderr);
    changed_.wait_for(lock, period, [this] { return done_; });
  }
  fmt::print(stderr, "\r\033[K");
  std::fflush(stderr);
}

}  // namespace tandem::cli
