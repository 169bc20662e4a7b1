// The queue of a stream's work: the order of its tasks, and the threads that run them.
#include "host/world/task_queue.h"

#include <gtest/gtest.h>

#include <atomic>
#include <stdexcept>
#include <vector>

namespace tandem::host {
namespace {

TEST(TaskQueue, WhoWaitsRunsTasksThatHaveNotBegun) {
  // The queue's thread may be the first of the two, but not every time.
  constexpr int kTries = 10'000;
  bool has_run_here = false;
  for (int i = 0; i < kTries && !has_run_here; ++i) {
    TaskQueue queue;
    std::thread::id by;
    queue.add([&] { by = std::this_thread::get_id(); }, {});
    queue.wait_until_empty();
    has_run_here = by == std::this_thread::get_id();
  }
  EXPECT_TRUE(has_run_here);
}

TEST(TaskQueue, ItsThreadFindsATaskForWhichNoThreadWaits) {
  TaskQueue queue;
  for (int round = 0; round < 20; ++round) {
    for (int i = 0; i < 10; ++i) {
      queue.add([] {}, {});
      queue.wait_until_empty();
    }
    std::atomic<bool> has_run{false};
    queue.add([&] { has_run = true; }, {});
    while (!has_run) std::this_thread::yield();
  }
}

TEST(TaskQueue, RunsOneTaskAtATimeInOrderHoweverManyThreadsWait) {
  constexpr int kRounds = 50, kTasks = 100, kWaiting = 4;
  for (int round = 0; round < kRounds; ++round) {
    TaskQueue queue;
    std::vector<int> done;
    std::atomic<int> running{0};
    bool was_alone = true;
    for (int i = 0; i < kTasks; ++i)
      queue.add(
          [&, i] {
            was_alone &= ++running == 1;
            done.push_back(i);
            --running;
          },
          {});
    std::vector<std::thread> waiting;
    waiting.reserve(kWaiting);
    for (int i = 0; i < kWaiting; ++i)
      waiting.emplace_back([&] {
        queue.wait_until_empty();
        EXPECT_TRUE(queue.is_empty());
      });
    for (std::thread& thread : waiting) thread.join();
    EXPECT_TRUE(was_alone);
    ASSERT_EQ(done.size(), std::size_t{kTasks});
    for (int i = 0; i < kTasks; ++i) EXPECT_EQ(done[static_cast<std::size_t>(i)], i);
  }
}

TEST(TaskQueue, WhoWaitsHandlesTheErrorOfATaskAsTheQueuesThreadDoes) {
  TaskQueue queue;
  int told = 0, done = 0;
  queue.add([] { throw std::runtime_error("on purpose"); }, [&](const std::exception_ptr&) { ++told; });
  queue.add([&] { ++done; }, {});
  queue.add_always([&] { done += 10; });
  queue.wait_until_empty();
  EXPECT_EQ(told, 1);
  EXPECT_EQ(done, 10) << "only what runs always";
  EXPECT_THROW(std::rethrow_exception(queue.error()), std::runtime_error);
}

TEST(TaskQueue, FinishesItsTasksAfterItWasClosed) {
  for (int round = 0; round < 100; ++round) {
    std::atomic<int> done{0};
    {
      TaskQueue queue;
      for (int i = 0; i < 10; ++i) queue.add([&] { ++done; }, {});
      std::thread waits([&] { queue.wait_until_empty(); });
      queue.close();
      waits.join();
    }
    EXPECT_EQ(done, 10);
  }
}

}  // namespace
}  // namespace tandem::host
