#pragma once
/// A progress bar on standard error, for commands of more than two seconds on a terminal. Elsewhere it is a line a
/// minute.

#include <chrono>
#include <condition_variable>
#include <mutex>
#include <string>
#include <thread>

namespace tandem::cli {

class Progress {
 public:
  /// `parts` is the number of parts of the work, `done` the number done before.
  explicit Progress(int parts, int done = 0);
  /// Draws nothing: for programs that call the tool's functions.
  static Progress silent() { return Progress(); }
  ~Progress();
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  /// Names the part that starts now.
  void begin(const std::string& what);
  /// Adds `parts` to the finished parts. Where standard error is no terminal, writes a line if the last one is a minute
  /// old.
  void advance(int parts = 1);

 private:
  Progress() : parts_(1), done_parts_(0) {}
  using Clock = std::chrono::steady_clock;

  void draw_until_done();
  long seconds_until(Clock::time_point now) const;

  const int parts_;
  const Clock::time_point started_ = Clock::now();
  Clock::time_point written_ = started_;
  bool writes_lines_ = false;
  std::mutex mutex_;
  std::condition_variable changed_;
  int done_parts_;
  std::string what_;
  bool done_ = false;
  std::thread drawer_;  // runs only on a terminal
};

/// Returns "[#########.....................] 31 % 12 s  all_reduce of 1024 bytes".
std::string progress_line(int done, int parts, long seconds, const std::string& what);

}  // namespace tandem::cli
