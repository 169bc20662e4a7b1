#include "base/fiber/fiber.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <memory>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "tandem/error.h"

namespace tandem {
namespace {

constexpr Size kSlabsOnly = 0;

#if !defined(__SANITIZE_THREAD__) && defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define __SANITIZE_THREAD__ 1
#endif
#endif
#if defined(__SANITIZE_THREAD__)
constexpr Size kMany = 4'000;  // ThreadSanitizer knows about 8,000 fibers at most
#elif defined(TANDEM_SANITIZER_FIBERS)
constexpr Size kMany = 20'000;  // some of them in slabs
#else
constexpr Size kMany = 100'000;
#endif

struct Worker {
  Fiber fiber;
  std::vector<int>* log = nullptr;
  int id = 0;
  int steps = 0;

  static void run(void* argument) {
    auto& self = *static_cast<Worker*>(argument);
    for (int i = 0; i < self.steps; ++i) {
      self.log->push_back(self.id * 10 + i);
      Fiber::suspend();
    }
    self.log->push_back(self.id * 10 + 9);
  }
};

struct Counted {
  explicit Counted(int* counter) : count(counter) { ++*count; }
  ~Counted() { --*count; }
  Counted(const Counted&) = delete;
  Counted& operator=(const Counted&) = delete;
  int* count;
};

void hold_and_suspend(void* count) {
  const Counted outer(static_cast<int*>(count));
  Fiber::suspend();
  const Counted inner(static_cast<int*>(count));
  Fiber::suspend();
}

struct SuspendsAtItsEnd {
  ~SuspendsAtItsEnd() { Fiber::suspend(); }
};

TEST(Fiber, UnwindEndsOneThatADestructorSuspended) {
  StackPool pool;
  int inner = 0;
  int outer = 0;
  std::pair<int*, int*> counts{&inner, &outer};
  for (int i = 0; i < 3; ++i) {
    Fiber fiber;
    fiber.start(
        pool,
        [](void* p) {
          const auto [in, out] = *static_cast<std::pair<int*, int*>*>(p);
          const Counted around(out);
          const SuspendsAtItsEnd waits;
          const Counted within(in);
        },
        &counts);
    fiber.resume();
    EXPECT_FALSE(fiber.finished());
    fiber.unwind();
    EXPECT_TRUE(fiber.finished());
  }
  EXPECT_EQ(inner, 0);
  EXPECT_EQ(outer, 3);  // they lie around the destructor
  EXPECT_EQ(std::uncaught_exceptions(), 0);
  EXPECT_EQ(std::current_exception(), nullptr);
  EXPECT_EQ(pool.made(), 1);
}

TEST(Fiber, RunsBetweenResumeAndSuspendInTheOrderOfTheScheduler) {
  StackPool pool;
  std::vector<int> log;
  Worker a, b;
  a.log = b.log = &log;
  a.id = 1, a.steps = 2;
  b.id = 2, b.steps = 1;
  a.fiber.start(pool, Worker::run, &a);
  b.fiber.start(pool, Worker::run, &b);
  EXPECT_TRUE(log.empty());
  a.fiber.resume();
  b.fiber.resume();
  a.fiber.resume();
  b.fiber.resume();
  EXPECT_TRUE(b.fiber.finished());
  EXPECT_FALSE(a.fiber.finished());
  a.fiber.resume();
  EXPECT_TRUE(a.fiber.finished());
  EXPECT_EQ(log, (std::vector<int>{10, 20, 11, 29, 19}));
}

TEST(Fiber, KnowsWhichOneRunsAndMayResumeOthers) {
  struct Nest {
    StackPool pool;
    Fiber outer, inner;
    bool right = false;
  } nest;
  EXPECT_EQ(Fiber::current(), nullptr);
  nest.outer.start(
      nest.pool,
      [](void* argument) {
        auto& n = *static_cast<Nest*>(argument);
        n.inner.start(
            n.pool, [](void* p) { static_cast<Nest*>(p)->right = Fiber::current() == &static_cast<Nest*>(p)->inner; },
            &n);
        n.inner.resume();
        n.right = n.right && Fiber::current() == &n.outer;
      },
      &nest);
  nest.outer.resume();
  EXPECT_TRUE(nest.right);
  EXPECT_EQ(Fiber::current(), nullptr);
}

TEST(Fiber, RefusesToResumeWhatCannotRun) {
  StackPool pool;
  Fiber fiber;
  EXPECT_THROW(fiber.resume(), CheckFailed);
  fiber.start(
      pool, [](void*) {}, nullptr);
  fiber.resume();
  EXPECT_THROW(fiber.resume(), CheckFailed);
}

TEST(Fiber, ManyAliveAtOnce) {
  StackPool pool;
  std::vector<std::unique_ptr<Fiber>> fibers;
  Size sum = 0;
  for (Size i = 0; i < kMany; ++i) {
    fibers.push_back(std::make_unique<Fiber>());
    fibers.back()->start(
        pool,
        [](void* p) {
          ++*static_cast<Size*>(p);
          Fiber::suspend();
          *static_cast<Size*>(p) += 1000;
        },
        &sum);
  }
  for (auto& fiber : fibers) fiber->resume();
  EXPECT_EQ(sum, kMany);
  for (auto& fiber : fibers) fiber->resume();
  EXPECT_EQ(sum, kMany * 1001);
  for (auto& fiber : fibers) EXPECT_TRUE(fiber->finished());
}

TEST(Fiber, FinishedAndAbandonedOnesReturnTheirStacks) {
  StackPool pool;
  for (int i = 0; i < 1000; ++i) {
    int count = 0;
    Fiber finished, abandoned;
    finished.start(
        pool, [](void*) {}, nullptr);
    finished.resume();
    abandoned.start(pool, hold_and_suspend, &count);
    abandoned.resume();
    EXPECT_EQ(count, 1);
  }
  EXPECT_EQ(pool.made(), 1);
}

TEST(Fiber, CanBeStartedAgain) {
  StackPool pool;
  Fiber fiber;
  int count = 0;
  for (int i = 0; i < 3; ++i) {
    fiber.start(
        pool, [](void* p) { ++*static_cast<int*>(p); }, &count);
    fiber.resume();
  }
  EXPECT_EQ(count, 3);
}

TEST(Fiber, RethrowsWhatLeavesTheEntryOnTheSideOfTheScheduler) {
  StackPool pool;
  Fiber fiber;
  fiber.start(
      pool, [](void*) { throw std::runtime_error("from within"); }, nullptr);
  try {
    fiber.resume();
    FAIL() << "nothing was thrown";
  } catch (const std::runtime_error& error) {
    EXPECT_STREQ(error.what(), "from within");
  }
  EXPECT_TRUE(fiber.finished());
}

TEST(Fiber, HasItsOwnExceptionInFlight) {
  struct Catcher {
    Fiber fiber;
    std::string message;
    std::string seen;
    static void run(void* argument) {
      auto& self = *static_cast<Catcher*>(argument);
      try {
        throw std::runtime_error(self.message);
      } catch (const std::runtime_error&) {
        Fiber::suspend();
        try {
          throw;
        } catch (const std::runtime_error& error) {
          self.seen = error.what();
        }
      }
    }
  };
  StackPool pool;
  Catcher a, b;
  a.message = "a";
  b.message = "b";
  a.fiber.start(pool, Catcher::run, &a);
  b.fiber.start(pool, Catcher::run, &b);
  a.fiber.resume();
  b.fiber.resume();
  EXPECT_EQ(std::current_exception(), nullptr);
  a.fiber.resume();
  b.fiber.resume();
  EXPECT_EQ(a.seen, "a");
  EXPECT_EQ(b.seen, "b");
}

TEST(Fiber, UnwindRunsDestructorsAndNothingElse) {
  struct Waiter {
    int alive = 0;
    bool went_on = false;
    static void run(void* argument) {
      auto& self = *static_cast<Waiter*>(argument);
      const Counted outer(&self.alive);
      const Counted inner(&self.alive);
      Fiber::suspend();
      self.went_on = true;
    }
  };
  StackPool pool;
  Fiber fiber;
  Waiter waiter;
  fiber.start(pool, Waiter::run, &waiter);
  fiber.resume();
  EXPECT_EQ(waiter.alive, 2);
  fiber.unwind();
  EXPECT_EQ(waiter.alive, 0);
  EXPECT_FALSE(waiter.went_on);
  EXPECT_TRUE(fiber.finished());
}

TEST(Fiber, UnwindOfOneThatHasNotBegunDoesNotRunIt) {
  StackPool pool;
  Fiber fiber;
  int count = 0;
  fiber.start(
      pool, [](void* p) { ++*static_cast<int*>(p); }, &count);
  fiber.unwind();
  EXPECT_TRUE(fiber.finished());
  EXPECT_EQ(count, 0);
}

TEST(Fiber, UnwindingIsVisibleWithin) {
  struct Probe {
    bool* seen;
    ~Probe() { *seen = Fiber::unwinding(); }
  };
  StackPool pool;
  Fiber fiber;
  bool seen = false;
  fiber.start(
      pool,
      [](void* p) {
        const Probe probe{static_cast<bool*>(p)};
        Fiber::suspend();
      },
      &seen);
  fiber.resume();
  fiber.unwind();
  EXPECT_TRUE(seen);
  EXPECT_FALSE(Fiber::unwinding());
}

/// Uses the stack down to the address `limit`.
[[gnu::noinline, gnu::no_sanitize_address]] int descend(std::uintptr_t limit) {
  volatile char here[48];
  here[0] = 1;
  if (reinterpret_cast<std::uintptr_t>(here) > limit) return descend(limit) + here[0];
  return here[0];
}

[[gnu::noinline, gnu::no_sanitize_address]] void descend_by(Size bytes) {
  descend(reinterpret_cast<std::uintptr_t>(__builtin_frame_address(0)) - static_cast<std::uintptr_t>(bytes));
}

TEST(Fiber, OverflowIsFoundByTheCanary) {
  StackPool pool(StackPool::kMinStackBytes, kSlabsOnly);
  Fiber culprit, neighbour;
  int count = 0;
  neighbour.start(pool, hold_and_suspend, &count);
  neighbour.resume();
  culprit.start(
      pool,
      [](void* p) {
        descend_by(static_cast<StackPool*>(p)->stack_bytes() + 64);
        Fiber::suspend();
      },
      &pool);
  try {
    culprit.resume();
    FAIL() << "nothing was thrown";
  } catch (const CheckFailed& error) {
    EXPECT_NE(std::string(error.what()).find("stack overflow of fiber"), std::string::npos);
  }
  EXPECT_TRUE(culprit.finished());
  neighbour.unwind();  // its stack is not to be trusted: no destructor runs
  EXPECT_TRUE(neighbour.finished());
  EXPECT_EQ(count, 1);
}

TEST(Fiber, UsesNearlyAllOfItsStack) {
  for (const Size guarded : {kSlabsOnly, StackPool::kMaxGuarded}) {
    StackPool pool(StackPool::kMinStackBytes, guarded);
    Fiber fiber;
    fiber.start(
        pool, [](void* p) { descend_by(static_cast<StackPool*>(p)->stack_bytes() - 2048); }, &pool);
    EXPECT_NO_THROW(fiber.resume());
    EXPECT_TRUE(fiber.finished());
  }
}

TEST(StackPool, RefusesStacksThatAreTooSmall) { EXPECT_THROW(StackPool(1024), InvalidArgument); }

}  // namespace
}  // namespace tandem
