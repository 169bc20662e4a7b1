#include "tools/tandem/options/progress.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>

#include "tools/tandem/main/console.h"

namespace tandem::cli {

Progress::Progress(int parts, int done) : parts_(std::max(1, parts)), done_parts_(done) {
  writes_lines_ = ::isatty(STDERR_FILENO) == 0;
  if (!writes_lines_) drawer_ = std::thread([this] { draw_until_done(); });
}

Progress::~Progress() {
  {
    const std::lock_guard lock(mutex_);
    done_ = true;
  }
  changed_.notify_all();
  if (drawer_.joinable()) drawer_.join();
}

void Progress::begin(const std::string& what) {
  const std::lock_guard lock(mutex_);
  what_ = what;
}

void Progress::advance(int parts) {
  const std::lock_guard lock(mutex_);
  done_parts_ = std::min(done_parts_ + parts, parts_);
  const auto now = Clock::now();
  if (!writes_lines_ || now - written_ < std::chrono::minutes(1)) return;
  written_ = now;
  note(progress_line(done_parts_, parts_, seconds_until(now), what_) + "\n");
}

long Progress::seconds_until(Clock::time_point now) const {
  return std::chrono::duration_cast<std::chrono::seconds>(now - started_).count();
}

void Progress::draw_until_done() {
  constexpr auto timeout = std::chrono::seconds(2);
  constexpr auto period = std::chrono::milliseconds(200);
  std::unique_lock lock(mutex_);
  if (changed_.wait_for(lock, timeout, [this] { return done_; })) return;
  while (!done_) {
    note("\r\033[K" + progress_line(done_parts_, parts_, seconds_until(Clock::now()), what_));
    changed_.wait_for(lock, period, [this] { return done_; });
  }
  note("\r\033[K");
}

std::string progress_line(int done, int parts, long seconds, const std::string& what) {
  constexpr int width = 30;
  const int filled = static_cast<int>(std::int64_t{width} * done / parts);
  return fmt::format("[{:#<{}}{:.<{}}] {} % {} s  {}", "", filled, "", width - filled, std::int64_t{100} * done / parts,
                     seconds, what);
}

}  // namespace tandem::cli
