#pragma once
/// A progress bar on standard error, for whoever waits longer than two seconds in front of a terminal.

#include <condition_variable>
#include <mutex>
#include <string>
#include <thread>

namespace tandem::cli {

class Progress {
 public:
  /// `steps`: how many times `step` will be called. Nothing is ever drawn where standard error is no terminal.
  explicit Progress(int steps);
  ~Progress();
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  /// The next step begins: what it does, for the person who waits.
  void step(const std::string& what);

 private:
  void draw_until_done();

  const int steps_;
  std::mutex mutex_;
  std::condition_variable changed_;
  int begun_ = 0;
  std::string what_;
  bool done_ = false;
  std::thread drawer_;  // only where there is a terminal
};

}  // namespace tandem::cli
