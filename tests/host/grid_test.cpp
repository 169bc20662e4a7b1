/// The engine below blocks on CPUs: how grids go forward, and how they end.

#include "host/grid.h"

#include <gmock/gmock.h>

#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cstring>
#include <memory>
#include <mutex>
#include <set>
#include <stdexcept>
#include <thread>

#include "support/body_kernel.h"
#include "support/host_pes.h"
#include "tandem/error.h"

namespace tandem::grid_test {
namespace {

using test::launch;

TEST(HostGrid, ManyBlocksOfManyPesGoForwardOnFewProcessors) {
  constexpr int kPes = 8, kBlocks = 32, kRounds = 50;
  test::HostPes(kPes).run([](World& world) {
    const Signals words = world.heap().signals(kBlocks * kPes, "words");
    Stream stream = world.make_stream("main");
    launch(stream, {kBlocks, 64}, [=](auto& block) {
      for (Epoch e = 1; e <= kRounds; ++e) {
        block.notify_all(words, e);
        block.wait_all(words, e);
      }
    });
    stream.synchronize();
    for (int i = 0; i < kBlocks * kPes; ++i) EXPECT_EQ(words.local()[i].value, Epoch{kRounds});
  });
}

TEST(HostGrid, PesMayBeProcesses) {
  constexpr int kPes = 8, kBlocks = 32;
  constexpr Epoch kRounds = 50;
  constexpr Size kWords = Size{64} << 10;  // offset, behind the wait words
  const test::HostPes pes(kPes, {.for_processes = true});
  const auto run = [&](int pe) {
    host::GridRequest request;
    request.name = "rounds";
    request.blocks = kBlocks;
    request.context = pes.context(pe);
    const cuda::Context& context = request.context;
    const Signals words(reinterpret_cast<Signal*>(reinterpret_cast<std::byte*>(context.abort_on_pe0) + kWords),
                        context.abort_stride, pe);
    request.body = [=](cpu::Block& block) {
      for (Epoch e = 1; e <= kRounds; ++e) {
        block.notify_all(words, e);
        block.wait_all(words, e);
      }
    };
    host::run_grid(request);
    for (int i = 0; i < kBlocks * kPes; ++i)
      if (words.local()[i].value != kRounds) return 1;
    return 0;
  };
  std::vector<pid_t> children;
  for (int pe = 1; pe < kPes; ++pe) {
    children.push_back(fork());
    if (children.back() == 0) _exit(run(pe));
  }
  EXPECT_EQ(run(0), 0);
  for (const pid_t child : children) {
    int status = 0;
    EXPECT_EQ(waitpid(child, &status, 0), child);
    EXPECT_EQ(status, 0);
  }
}

/// Their data travels in their requests.
TEST(HostGrid, ShortPutsToAnotherNodeWaitForNoProxy) {
  const test::HostPes pes(2, {.timeout_s = 2, .arrival_timeout_s = 2});
  std::array<std::uint64_t, 4> memory{};  // of two PEs
  wire::Mailbox mailbox({reinterpret_cast<std::byte*>(memory.data()), 16, 2, 0, 1}, [] {});
  host::GridRequest request;
  request.context = pes.context(0);
  request.mailbox = &mailbox;
  request.body = [&](cpu::Block& block) {
    std::array<std::uint64_t, 2> source{1, 2};
    block.put(Symm<std::uint64_t>(memory.data(), 16, 0), source.data(), 2, 1);
    source = {7, 8};
  };
  host::run_grid(request);
  EXPECT_EQ(pes.report(0).set, 0U);
  ASSERT_TRUE(mailbox.has_request());
  wire::Request posted;
  mailbox.take(posted);
  ASSERT_TRUE(posted.holds_data);
  const std::array<std::uint64_t, 2> expected{1, 2};
  EXPECT_EQ(std::memcmp(posted.held.data(), expected.data(), 16), 0);
}

TEST(HostGrid, PollingLoopsLetOthersGoOn) {
  test::HostPes(2).run([](World& world) {
    const auto flag = world.heap().allocate<std::uint32_t>(1, "flag");
    const Signals words = world.heap().signals(4, "words");
    Stream stream = world.make_stream("main");
    launch(stream, {4, 32}, [=](auto& block) {
      if (block.index() < 3) {
        while (!block.signal_test(words, Cmp::kEq, 1)) {
        }
        while (block.load_scalar(flag.local()) == 0) {
        }
        while (block.compare_swap(flag.local(), 2U, 2U) == 0) {
        }
      } else {
        block.signal(words, 1, 1 - block.pe());
        block.store_scalar(block.remote(flag, 1 - block.pe()), 2U);
      }
    });
    stream.synchronize();
    world.barrier();  // a polled word orders nothing
    EXPECT_EQ(*flag.local(), 2U);
  });
}

TEST(HostGrid, RolesRunSideBySideAndJoin) {
  test::HostPes(1).run([](World& world) {
    const Signals words = world.heap().signals(2, "words");
    auto* const order = world.heap().allocate_local<Epoch>(3, "order");
    Stream stream = world.make_stream("main");
    launch(stream, {2, 128}, [=](auto& block) {
      if (block.index() > 0) return;
      block.template parallel<1, 3>(
          [&](auto& consumer) {  // would hang if roles ran one after the other
            consumer.wait(words, 1, 1);
            consumer.store_scalar(order, Epoch{1});
            consumer.notify(words + 1, 1, 0);
          },
          [&](auto& producer) {
            producer.notify(words, 1, 0);
            producer.wait(words + 1, 1, 1);
          });
      block.template parallel_for<1>(
          3, [&](auto& role, int i) { role.store_scalar(order + i, order[i] + static_cast<Epoch>(10 + i)); });
    });
    stream.synchronize();
    EXPECT_EQ(order[0], 11U);
    EXPECT_EQ(order[1], 11U);
    EXPECT_EQ(order[2], 12U);
  });
}

TEST(HostGrid, AWaitInVainEndsAllPesAndSaysWhatItWaitedFor) {
  test::HostPes pes(2, {.timeout_s = 0.2});
  Signals words;
  EXPECT_THROW(pes.run([&](World& world) {
    const Signals mine = world.heap().signals(8, "words");
    if (world.pe() == 1) words = mine;
    Stream stream = world.make_stream("main");
    launch(stream, {4, 64}, [=](auto& block) {
      block.notify_all(mine, 1);
      if (block.pe() == 1 && block.index() == 2)
        block.wait(mine + 5, 1, 7);  // it never becomes 7
      else
        block.wait(mine + (6 + block.pe()), 1, 2);  // nor this one
    });
    stream.synchronize();
  }),
               Deadlock);
  const cuda::WaitReport& report = pes.report(1);
  const cuda::WaitReport& other = pes.report(0);
  ASSERT_NE(report.set + other.set, 0U);
  const auto& first = report.set != 0 ? report : other;
  const auto& second = report.set != 0 ? other : report;
  EXPECT_EQ(first.set, cuda::kTimedOut);
  EXPECT_TRUE(second.set != 0 || second.ended_by != 0);
  if (report.set != 0 && report.block == 2) {
    EXPECT_EQ(report.word, words.on(1) + 5);
    EXPECT_EQ(report.expected, 7U);
  }
}

TEST(HostGrid, AWaitThatTimesOutReportsItsWordBlockAndValues) {
  test::HostPes pes(1, {.timeout_s = 0.1});
  const Signal* word = nullptr;
  EXPECT_THROW(pes.run([&](World& world) {
    const Signals words = world.heap().signals(4, "words");
    word = words.local() + 3;
    Stream stream = world.make_stream("main");
    launch(stream, {3, 64}, [=](auto& block) {
      if (block.index() != 1) return;
      block.signal(words + 3, 4, 0);
      block.wait(words + 3, 1, 5);
    });
    stream.synchronize();
  }),
               Deadlock);
  const cuda::WaitReport& report = pes.report(0);
  EXPECT_EQ(report.set, cuda::kTimedOut);
  EXPECT_EQ(report.block, 1);
  EXPECT_EQ(report.word, word);
  EXPECT_EQ(report.expected, 5U);
  EXPECT_EQ(report.found, 4U);
  EXPECT_EQ(report.without_wait, -1);
}

TEST(HostGrid, ALoopOfTestsInVainEndsToo) {
  test::HostPes pes(1, {.timeout_s = 0.1});
  EXPECT_THROW(pes.run([](World& world) {
    const Signals words = world.heap().signals(1, "words");
    Stream stream = world.make_stream("main");
    launch(stream, {1, 32}, [=](auto& block) {
      while (!block.signal_test(words, Cmp::kGe, 9)) {
      }
    });
    stream.synchronize();
  }),
               Deadlock);
  EXPECT_EQ(pes.report(0).expected, 9U);
}

TEST(HostGrid, WaitsEndWhereSomebodyElseGivesUpAndWhatComesLaterDoesNothing) {
  test::HostPes pes(2);
  Signals words;
  bool ran_later = false;
  EXPECT_THROW(pes.run([&](World& world) {
    const Signals mine = world.heap().signals(2, "words");
    Stream stream = world.make_stream("main");
    if (world.pe() == 1) {
      stream.wait_signal(mine.local(), 1);  // the other one's grid has begun
      stream.synchronize();
      return host::end_waits(pes.context(1), 0, cuda::kAbortedByHost);
    }
    words = mine;
    launch(stream, {2, 64}, [=](auto& block) {
      if (block.index() == 0) block.signal(mine, 1, 1);
      if (block.index() == 1) block.template parallel_for<1>(2, [&](auto& role, int i) { role.wait(mine + i, 1, 3); });
    });
    bool* const later = &ran_later;
    launch(stream, {1, 64}, [=](auto&) { *later = true; });
    stream.synchronize();
  }),
               Deadlock);
  const cuda::WaitReport& report = pes.report(0);
  EXPECT_EQ(report.set, 0U);
  EXPECT_EQ(report.ended_by, cuda::kAbortedByHost);
  EXPECT_FALSE(ran_later);
  EXPECT_EQ(report.ended.is_set, 1U);
  EXPECT_EQ(report.ended.block, 1);
  EXPECT_EQ(report.ended.expected, 3U);
  EXPECT_TRUE(report.ended.word == words.on(0) || report.ended.word == words.on(0) + 1);
}

TEST(HostGrid, WorkThatIsSkippedIsReported) {
  test::HostPes pes(1);
  bool ran = false;
  EXPECT_THROW(pes.run([&](World& world) {
    host::end_waits(pes.context(0), 0, cuda::kAbortedByHost);
    bool* const it = &ran;
    Stream stream = world.make_stream("main");
    launch(stream, {1, 64}, [=](auto&) { *it = true; });
    stream.synchronize();
  }),
               Deadlock);
  EXPECT_FALSE(ran);
}

TEST(HostGrid, WhatLeavesABlockEndsTheOthersAndIsThrown) {
  struct Counted {
    explicit Counted(int& to) : alive(to) { ++alive; }
    ~Counted() { --alive; }
    int& alive;
  };
  test::HostPes pes(2);
  int alive = 0;
  try {
    pes.run([&alive](World& world) {
      const Signals words = world.heap().signals(1, "words");
      Stream stream = world.make_stream("main");
      int* const counter = &alive;
      launch(stream, {4, 64}, [=](auto& block) {
        if (block.pe() == 1) {
          block.wait(words, 1, 1);
          return;
        }
        const Counted counted(*counter);
        if (block.index() == 3) throw std::runtime_error("from a kernel");
        block.template parallel_for<1>(2, [&](auto& role, int) { role.wait(words, 1, 1); });
      });
      stream.synchronize();
    });
    FAIL() << "nothing was thrown";
  } catch (const std::runtime_error& error) {
    EXPECT_STREQ(error.what(), "from a kernel");
  }
  EXPECT_EQ(alive, 0);
}

TEST(HostGrid, BlocksRunOnAsManyThreadsAsThereAre) {
  constexpr int kThreads = 3, kBlocks = 8;
  test::HostPes(1, {.threads = kThreads}).run([](World& world) {
    std::mutex mutex;
    std::set<std::thread::id> by;
    Stream stream = world.make_stream("main");
    launch(stream, {kBlocks, 64}, [mutex = &mutex, by = &by](auto&) {
      const std::lock_guard lock(*mutex);
      by->insert(std::this_thread::get_id());
    });
    stream.synchronize();
    EXPECT_EQ(by.size(), std::size_t{kThreads});
  });
}

TEST(HostGrid, ManyBlocksOnSeveralThreadsGoForward) {
  constexpr int kPes = 3, kBlocks = 32, kRounds = 50;
  test::HostPes(kPes, {.threads = 4}).run([](World& world) {
    const Signals words = world.heap().signals(kBlocks * kPes, "words");
    Stream stream = world.make_stream("main");
    for (int call = 0; call < 3; ++call)
      launch(stream, {kBlocks, 64}, [=](auto& block) {
        for (Epoch e = 1; e <= kRounds; ++e) {
          block.notify_all(words, call * kRounds + e);
          block.wait_all(words, call * kRounds + e);
        }
      });
    stream.synchronize();
    for (int i = 0; i < kBlocks * kPes; ++i) EXPECT_EQ(words.local()[i].value, Epoch{3 * kRounds});
  });
}

TEST(HostGrid, WhatLeavesABlockEndsThoseOfOtherThreads) {
  test::HostPes pes(1, {.threads = 4});
  std::atomic<int> alive{0};
  try {
    pes.run([&alive](World& world) {
      const Signals words = world.heap().signals(1, "words");
      Stream stream = world.make_stream("main");
      launch(stream, {8, 64}, [=, alive = &alive](auto& block) {
        ++*alive;
        const std::shared_ptr<void> counted(nullptr, [=](void*) { --*alive; });
        if (block.index() == 5) throw std::runtime_error("from a kernel");
        block.wait(words, 1, 1);
      });
      stream.synchronize();
    });
    FAIL() << "nothing was thrown";
  } catch (const std::runtime_error& error) {
    EXPECT_STREQ(error.what(), "from a kernel");
  }
  EXPECT_EQ(alive, 0);
  EXPECT_EQ(pes.report(0).set, 0U) << "no wait has timed out";
}

TEST(HostGrid, BadInputHasOneClearLine) {
  const auto error_of = [](const auto& body) -> std::string {
    try {
      test::HostPes(1).run([&](World& world) {
        Stream stream = world.make_stream("main");
        launch(stream, {1, 64}, body);
        stream.synchronize();
      });
    } catch (const std::exception& error) {
      return error.what();
    }
    return "";
  };
  EXPECT_EQ(error_of([](auto& block) { block.template parallel_for<1>(3, [](auto&, int) {}); }),
            "parallel: roles of 3 warps in all asked, the block has 2");
  EXPECT_THAT(error_of([](auto& block) { block.signal(Signals(), 1, 0); }),
              ::testing::HasSubstr("which is no PE's memory: PEs are 0 to 0"));
  EXPECT_THAT(error_of([](auto& block) {
                block.template multimem_load_reduce<float>(Symm<float>(), Range{0, 8}, ReduceOp::kSum);
              }),
              ::testing::HasSubstr("machine 'test' has no multicast"));
}

TEST(HostGemm, BadFieldsAreNamed) {
  const auto error_of = [](const Gemm& gemm) -> std::string {
    try {
      host::check_gemm(gemm, 8);
    } catch (const Error& error) {
      return error.what();
    }
    return "";
  };
  float values[4] = {};
  Gemm gemm;
  gemm.m = gemm.n = gemm.k = 2;
  gemm.a = gemm.b = values;
  gemm.destination = GemmLocal{values};
  EXPECT_EQ(error_of(gemm), "");
  const auto with = [&](const auto& change) {
    Gemm changed = gemm;
    change(changed);
    return error_of(changed);
  };
  EXPECT_EQ(with([](Gemm& g) { g.m = -1; }), "gemm: m is -1, allowed: 0 or more");
  EXPECT_EQ(with([](Gemm& g) { g.sms = 9; }), "gemm: sms is 9, allowed: 0 (all) to the machine's SMs");
  EXPECT_EQ(with([](Gemm& g) { g.b = nullptr; }), "gemm: b is null, allowed: an address");
  EXPECT_EQ(with([](Gemm& g) { g.destination = GemmLocal{}; }), "gemm: c is null, allowed: an address");
  EXPECT_EQ(with([](Gemm& g) { g.destination = GemmSum{}; }),
            "gemm: a sum over PEs given, the kernel of CPUs adds nothing up");
}

TEST(HostStream, SignalsAndWaitsOfStreamsGoInOrder) {
  test::HostPes(2).run([](World& world) {
    const Signals words = world.heap().signals(2, "words");
    auto* const value = world.heap().allocate_local<Epoch>(1, "value");
    *value = 8;
    Stream stream = world.make_stream("main");
    const int other = 1 - world.pe();
    stream.write_signal(words.on(other), 7);
    stream.wait_signal(words.local(), 7);
    stream.write_signal_from(words.on(other) + 1, value);
    stream.wait_signal(words.local() + 1, 8);
    stream.synchronize();
    EXPECT_EQ(words.local()[0].value, 7U);
    EXPECT_EQ(words.local()[1].value, 8U);
  });
}

TEST(HostStream, CallsThatDifferAreReported) {
  for (const bool counts : {false, true}) {
    test::HostPes pes(3);
    EXPECT_THROW(pes.run([&](World& world) {
      detail::CallComparison comparison;
      comparison.words = world.heap().signals(2 * 2 * 3, "words");
      comparison.calls = world.heap().epochs(1, "calls");
      comparison.signature = 5;
      comparison.count = 100;
      Stream stream = world.make_stream("main");
      for (int call = 0; call < 4; ++call) stream.compare_call(comparison, world.team());
      stream.synchronize();
      if (world.pe() == 2) (counts ? comparison.count = 101 : static_cast<Size>(comparison.signature = 6));
      stream.compare_call(comparison, world.team());
      stream.synchronize();
    }),
                 Deadlock);
    std::uint32_t said = 0;
    for (int pe = 0; pe < 3; ++pe) said |= pes.report(pe).set;
    EXPECT_EQ(said, counts ? cuda::kCallsOfOtherCounts : cuda::kOtherCalls);
  }
}

}  // namespace
}  // namespace tandem::grid_test
