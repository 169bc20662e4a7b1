#include "bindings/nccl/handles.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <cstdlib>
#include <deque>
#include <map>
#include <mutex>
#include <system_error>
#include <thread>
#include <vector>

struct ncclComm {
  char place = 0;
};

namespace tandem::nccl {

namespace {

/// Never destroyed: at the process's end other threads may still be in a call.
struct Table {
  std::mutex mutex;
  std::deque<ncclComm> handles;  // those of the past, too
  std::map<const ncclComm*, std::shared_ptr<Communicator>> all;
};

Table& table() {
  static auto& all = *new Table;
  return all;
}

/// Returns the communicators that the process leaves to its end. Kernels of a GPU go on without the process.
std::vector<std::shared_ptr<Communicator>> left_on_cpus() {
  std::vector<std::shared_ptr<Communicator>> left;
  for (const auto& communicator : all_communicators())
    if (communicator->is_on_cpus()) left.push_back(communicator);
  return left;
}

/// The threads that close communicators.
struct Closing {
  std::mutex mutex;
  std::condition_variable changed;
  int threads = 0;
  pid_t process = ::getpid();
};

Closing& closing() {
  static auto& all = *new Closing;
  return all;
}

void close(const std::shared_ptr<Communicator>& communicator) {
  try {
    communicator->close();
  } catch (const std::exception& error) {
    warn(fmt::format("destroy: {}", error.what()));
  }
}

/// Runs at the end of the process. Peers may still be in calls whose part here is done: a process that vanished then
/// would end their waits. One that has ended its communicators waits for them, but not for ever.
void close_all() {
  constexpr std::chrono::seconds kMost(5);
  Closing& all = closing();
  if (all.process != ::getpid()) return;  // a child has none of its parent's threads
  for (const auto& communicator : left_on_cpus()) close_later(communicator);
  std::unique_lock lock(all.mutex);
  all.changed.wait_for(lock, kMost, [&] { return all.threads == 0; });
}

}  // namespace

void close_at_exit() {
  closing();
  std::atexit(close_all);
}

ncclComm_t add_handle(std::shared_ptr<Communicator> communicator) {
  static std::once_flag once;
  std::call_once(once, close_at_exit);
  const std::lock_guard lock(table().mutex);
  ncclComm* const handle = &table().handles.emplace_back();
  table().all.emplace(handle, std::move(communicator));
  return handle;
}

std::shared_ptr<Communicator> find_communicator(ncclComm_t handle) {
  const std::lock_guard lock(table().mutex);
  const auto found = table().all.find(handle);
  return found == table().all.end() ? nullptr : found->second;
}

bool was_handle(ncclComm_t handle) {
  const std::lock_guard lock(table().mutex);
  return std::any_of(table().handles.begin(), table().handles.end(),
                     [&](const ncclComm& one) { return &one == handle; });
}

std::vector<std::shared_ptr<Communicator>> all_communicators() {
  const std::lock_guard lock(table().mutex);
  std::vector<std::shared_ptr<Communicator>> all;
  for (const auto& [handle, communicator] : table().all) all.push_back(communicator);
  return all;
}

std::shared_ptr<Communicator> communicator_of(ncclComm_t handle) {
  auto found = find_communicator(handle);
  if (found == nullptr)
    throw InvalidArgument(fmt::format("comm: {} given, allowed is a communicator that was made and not destroyed",
                                      handle == nullptr ? "NULL" : fmt::to_string(fmt::ptr(handle))));
  return found;
}

std::shared_ptr<Communicator> remove_handle(ncclComm_t handle) {
  auto found = communicator_of(handle);
  const std::lock_guard lock(table().mutex);
  if (table().all.erase(handle) == 0) throw InvalidArgument("comm: another thread destroys it");
  return found;
}

void close_later(std::shared_ptr<Communicator> communicator) {
  Closing& all = closing();
  {
    const std::lock_guard lock(all.mutex);
    ++all.threads;
  }
  const auto work = [&all](std::shared_ptr<Communicator> mine) {
    close(mine);
    mine.reset();
    const std::lock_guard lock(all.mutex);
    --all.threads;
    all.changed.notify_all();
  };
  try {
    std::thread(work, communicator).detach();
  } catch (const std::system_error&) {
    work(communicator);
  }
}

}  // namespace tandem::nccl
