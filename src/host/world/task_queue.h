#pragma once
/// The work of one stream: tasks in order, on a thread of their own.

#include <condition_variable>
#include <deque>
#include <exception>
#include <functional>
#include <mutex>
#include <thread>

namespace tandem::host {

/// The thread starts with the first task.
class TaskQueue {
 public:
  using OnError = std::function<void(const std::exception_ptr&)>;

  TaskQueue() = default;
  /// Waits for all tasks.
  ~TaskQueue();
  TaskQueue(const TaskQueue&) = delete;
  TaskQueue& operator=(const TaskQueue&) = delete;

  /// After a task that throws, later ones are left out; `on_error` is called then, on the queue's thread. Throws
  /// RuntimeFailure where no thread can be started.
  void add(std::function<void()> task, const OnError& on_error);
  /// The same for a task that runs in any case and throws nothing.
  void add_always(std::function<void()> task);
  /// Waits until nothing is left.
  void wait_until_empty();
  /// The error of the task that threw, if one did.
  std::exception_ptr error() const;
  /// Nothing will be added any more.
  void close();
  bool is_closed() const;
  bool is_empty() const;

 private:
  struct Task {
    std::function<void()> run;
    OnError on_error;
    bool always = false;
  };

  void push(Task task);
  void work();
  void run(Task& task);

  mutable std::mutex mutex_;
  std::condition_variable added_;
  std::condition_variable emptied_;
  std::deque<Task> tasks_;  // the first one may be running
  std::exception_ptr error_;
  bool is_closed_ = false;
  std::thread thread_;
};

}  // namespace tandem::host
