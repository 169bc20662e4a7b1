#pragma once
/// Threads that run a part of the blocks of a grid each, beside the thread that launches it.

#include <condition_variable>
#include <cstdint>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

namespace tandem::host {

/// Its threads start with the first call that needs them, and end with the crew. One thread at a time uses it.
class Crew {
 public:
  Crew() = default;
  ~Crew();
  Crew(const Crew&) = delete;
  Crew& operator=(const Crew&) = delete;

  /// Calls work(i, n) for each i below n at the same time: i = 0 on the calling thread. Here n is `most`, or less if
  /// the system starts no more threads. Blocks until all calls have returned. `work` must not throw.
  void run(int most, const std::function<void(int part, int parts)>& work);

 private:
  void grow(int most);
  void help(int part);

  std::mutex mutex_;
  std::condition_variable begun_;
  std::condition_variable ended_;
  const std::function<void(int, int)>* work_ = nullptr;
  int parts_ = 0;
  int running_ = 0;           // parts of the crew's threads
  std::uint64_t rounds_ = 0;  // calls of `run` that the threads have been told of
  bool is_over_ = false;
  std::vector<std::thread> threads_;
};

/// The threads that may run the blocks of one grid.
struct GridThreads {
  Crew* crew = nullptr;  ///< null: the calling thread alone
  int most = 1;          ///< with the calling thread
};

}  // namespace tandem::host
