#pragma once
/// A progress bar on standard error, for commands of more than two seconds on a terminal.

#include <condition_variable>
#include <mutex>
#include <string>
#include <thread>

namespace tandem::cli {

class Progress {
 public:
  /// `parts` is the number of parts of the work, `done` the number done before. Nothing is drawn if standard error is
  /// not a terminal.
  explicit Progress(int parts, int done = 0);
  /// Draws nothing: for programs that call the tool's functions.
  static Progress silent() { return Progress(); }
  ~Progress();
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  /// Names the part that starts now.
  void begin(const std::string& what);
  /// Adds `parts` to the finished parts.
  void advance(int parts = 1);

 private:
  Progress() : parts_(1), done_parts_(0) {}
  void draw_until_done();

  const int parts_;
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
