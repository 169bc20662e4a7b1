#pragma once
/// The work of one stream: tasks in order, on a thread of the queue or on a thread that waits for them.

#include <condition_variable>
#include <deque>
#include <exception>
#include <functional>
#include <mutex>
#include <thread>

#include "host/crew.h"

namespace tandem::host {

/// A queue of tasks. Its thread starts with the first task. One task runs at a time.
///
/// After a task that a waiting thread began, the next one is likely to begin so, too. A wake-up of the queue's thread
/// would then waste its time. So the thread looks for tasks every quarter of a millisecond instead, until a
/// look finds a task or no task has come for 16 milliseconds.
class TaskQueue {
 public:
  using OnError = std::function<void(const std::exception_ptr&)>;

  TaskQueue() = default;
  /// Blocks until all tasks are done.
  ~TaskQueue();
  TaskQueue(const TaskQueue&) = delete;
  TaskQueue& operator=(const TaskQueue&) = delete;

  /// Adds a task. If a task throws, its `on_error` is called on the thread that ran it, and later tasks are skipped.
  /// Throws RuntimeFailure if no thread can be started.
  void add(std::function<void()> task, const OnError& on_error);
  /// Adds a task that throws nothing. It runs even after another task has thrown.
  void add_always(std::function<void()> task);
  /// Blocks until the queue is empty. If the queue's thread has not begun yet, runs the tasks itself: that saves the
  /// time in which one thread wakes another.
  void wait_until_empty();
  /// Returns the exception of the task that threw, or null.
  std::exception_ptr error() const;
  /// Closes the queue: no task will be added any more.
  void close();
  bool is_closed() const;
  bool is_empty() const;
  /// Returns the threads that help a task; the task alone uses them.
  Crew& crew() { return crew_; }

 private:
  struct Task {
    std::function<void()> run;
    OnError on_error;
    bool always = false;
  };

  void push(Task task);
  void work();
  /// Blocks until the queue's thread has a task to run or the queue is closed.
  void wait_for_task(std::unique_lock<std::mutex>& lock);
  /// Runs the first task without the lock, then removes it.
  void run_first(std::unique_lock<std::mutex>& lock);
  void run(Task& task);

  mutable std::mutex mutex_;
  std::condition_variable added_;
  std::condition_variable emptied_;
  std::deque<Task> tasks_;   // the first one may be running
  bool is_running_ = false;  // a thread runs tasks, and goes on until there are none
  bool is_helped_ = false;   // a waiting thread began the last task
  bool looks_ = false;       // the queue's thread looks for tasks from time to time, so that none need wake it
  std::exception_ptr error_;
  bool is_closed_ = false;
  Crew crew_;
  std::thread thread_;
};

}  // namespace tandem::host
