#include "host/world/task_queue.h"

#include <fmt/format.h>

#include <chrono>
#include <system_error>
#include <utility>

#include "tandem/error.h"

namespace tandem::host {

TaskQueue::~TaskQueue() {
  close();
  if (thread_.joinable()) thread_.join();
}

void TaskQueue::add(std::function<void()> task, const OnError& on_error) { push({std::move(task), on_error, false}); }

void TaskQueue::add_always(std::function<void()> task) { push({std::move(task), nullptr, true}); }

void TaskQueue::push(Task task) {
  std::unique_lock lock(mutex_);
  if (!thread_.joinable()) {
    try {
      thread_ = std::thread([this] { work(); });
    } catch (const std::system_error& refused) {
      throw RuntimeFailure(fmt::format("stream: its thread could not be started: {}", refused.what()));
    }
  }
  tasks_.push_back(std::move(task));
  const bool wakes = !looks_;
  lock.unlock();
  if (wakes) added_.notify_one();
}

void TaskQueue::wait_until_empty() {
  std::unique_lock lock(mutex_);
  while (!tasks_.empty()) {
    if (is_running_) {
      emptied_.wait(lock, [&] { return tasks_.empty(); });
    } else {
      is_helped_ = true;
      run_first(lock);
    }
  }
}

std::exception_ptr TaskQueue::error() const {
  const std::lock_guard lock(mutex_);
  return error_;
}

void TaskQueue::close() {
  const std::lock_guard lock(mutex_);
  is_closed_ = true;
  added_.notify_one();
}

bool TaskQueue::is_closed() const {
  const std::lock_guard lock(mutex_);
  return is_closed_;
}

bool TaskQueue::is_empty() const {
  const std::lock_guard lock(mutex_);
  return tasks_.empty();
}

void TaskQueue::work() {
  std::unique_lock lock(mutex_);
  for (;;) {
    wait_for_task(lock);
    if (tasks_.empty()) return;
    run_first(lock);
  }
}

void TaskQueue::wait_for_task(std::unique_lock<std::mutex>& lock) {
  constexpr std::chrono::microseconds kLook{250};
  constexpr int kLooks = 64;  // without a task
  const auto has_task = [&] { return !is_running_ && (!tasks_.empty() || is_closed_); };
  int looks = 0;
  for (;;) {
    if (std::exchange(is_helped_, false)) looks = kLooks;
    if (looks-- == 0) break;
    looks_ = true;
    const bool found = added_.wait_for(lock, kLook, has_task);
    looks_ = false;
    if (found) return;
  }
  added_.wait(lock, has_task);
}

void TaskQueue::run_first(std::unique_lock<std::mutex>& lock) {
  is_running_ = true;
  Task& task = tasks_.front();  // others are added behind it meanwhile
  const bool runs = task.always || !error_;
  lock.unlock();
  if (runs) run(task);
  task = {};
  lock.lock();
  tasks_.pop_front();
  is_running_ = false;
  if (tasks_.empty()) emptied_.notify_all();
  if (is_closed_) added_.notify_one();
}

void TaskQueue::run(Task& task) {
  try {
    task.run();
  } catch (...) {
    {
      const std::lock_guard lock(mutex_);
      error_ = std::current_exception();
    }
    if (task.on_error) task.on_error(std::current_exception());
  }
}

}  // namespace tandem::host
