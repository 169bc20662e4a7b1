// Hangs: the report names who is to blame and the signal that is missing.

#include <gtest/gtest.h>

#include "check/conformance.h"
#include "tandem/advanced/check_matcher.h"
#include "tandem/error.h"

namespace tandem::check_test {

namespace {

using ::testing::HasSubstr;

template <class Body>
Finding hang_of(int pes, const Body& body, int blocks = 1, int threads = 512) {
  CheckOptions options;
  options.pes = pes;
  options.schedules = 3;
  const CheckResult result = check(
      [&](World& world) {
        const Env env = make_env(world);
        Stream stream = world.make_stream("main");
        stream.launch<Kernel<Body>>({blocks, threads}, {body, env});
        stream.synchronize();
      },
      options);
  for (const Finding& finding : result.findings)
    if (finding.kind == "hang") return finding;
  ADD_FAILURE() << "no hang: " << result.text();
  return {};
}

/// Tokens go round a ring in `steps` steps, counted by ADD; PE `silent` leaves out the signal of one step.
auto ring(int silent, Epoch silent_step, Epoch steps) {
  return [=](auto& block, const Env& e) {
    for (Epoch step = 1; step <= steps; ++step) {
      if (block.pe() != silent || step != silent_step)
        block.notify(e.words, 1, (block.pe() + 1) % block.num_pes(), SignalOp::kAdd);
      block.wait(e.words, 1, step);
    }
  };
}

TEST(Hang, NamesThePeThatSkipsASignalOfARing) {
  for (const int silent : {0, 1, 2, 3}) {
    for (const Epoch step : {1, 3, 6}) {
      const Finding finding = hang_of(4, ring(silent, step, 6));
      ASSERT_FALSE(finding.pes.empty());
      EXPECT_EQ(finding.pes.front(), silent) << finding.text();
      EXPECT_EQ(finding.signal, "words[0] on PE " + std::to_string((silent + 1) % 4)) << finding.text();
      EXPECT_THAT(finding.missing, HasSubstr("a signal of PE " + std::to_string(silent)));
    }
  }
}

/// PE 0 tells all others but the last one.
TEST(Hang, NamesTheRootThatForgetsOneOfItsPeers) {
  const Finding finding = hang_of(4, [](auto& block, const Env& e) {
    if (block.pe() != 0) return static_cast<void>(block.wait(e.words, 1, 1));
    for (const int pe : {1, 2}) block.notify(e.words, 1, pe);
  });
  ASSERT_FALSE(finding.pes.empty());
  EXPECT_EQ(finding.pes.front(), 0) << finding.text();
  EXPECT_THAT(finding.missing, HasSubstr("probably a signal of PE 0: words[0] on PE 3 is 0")) << finding.text();
  EXPECT_THAT(finding.missing, HasSubstr("probably PE 0 was to write it")) << finding.text();
}

TEST(Hang, NamesThePeThatLeavesOutAPutSignal) {
  const Finding finding = hang_of(4, [](auto& block, const Env& e) {
    if (block.pe() != 2) block.put_signal(e.data, e.local, kN, e.words, 1, (block.pe() + 1) % 4);
    block.wait(e.words, 1, 1);
  });
  ASSERT_FALSE(finding.pes.empty());
  EXPECT_EQ(finding.pes.front(), 2) << finding.text();
}

TEST(Hang, NamesWhoSentPacketsBefore) {
  const Finding finding = hang_of(2, [](auto& block, const Env& e) {
    if (block.pe() == 0) block.template ll_put<LLPacket>(e.packets, e.local, 4, 1, 1);
    if (block.pe() == 1)
      for (const Epoch epoch : {1, 2}) block.template ll_get<float, float>(e.packets.local(), 4, epoch);
  });
  ASSERT_FALSE(finding.pes.empty());
  EXPECT_EQ(finding.pes.front(), 0) << finding.text();
  EXPECT_THAT(finding.missing, HasSubstr("packets of PE 0: packets whose flags never come")) << finding.text();
}

TEST(Hang, NamesTheCycleWhereAllPesWaitFirst) {
  const Finding finding = hang_of(2, [](auto& block, const Env& e) {
    block.wait(e.words, 1, 1);
    block.notify(e.words, 1, 1 - block.pe());
  });
  EXPECT_THAT(finding.missing, HasSubstr("no PE ever wrote it")) << finding.text();
}

TEST(Hang, TellsAWrongEpoch) {
  const Finding finding = hang_of(2, [](auto& block, const Env& e) {
    if (block.pe() == 0) block.notify(e.words, 1, 1);
    if (block.pe() == 1) block.wait(e.words, 1, 2);
  });
  EXPECT_EQ(finding.pes.front(), 0);
  EXPECT_THAT(finding.missing, HasSubstr("words[0] on PE 1 is 1, the wait needs >= 2"));
}

TEST(Hang, TellsOfBlocksThatNeverFoundRoom) {
  // More blocks than can be resident, each waiting for the last one.
  const Finding finding = hang_of(
      1,
      [](auto& block, const Env& e) {
        if (block.index() + 1 == block.count()) block.notify(e.words, 1, 0);
        block.wait(e.words, 1, 1);
      },
      400, 1024);
  EXPECT_THAT(finding.missing, HasSubstr("blocks never started")) << finding.text();
}

template <class Poll>
CheckResult check_poll(const Poll& poll) {
  CheckOptions options;
  options.pes = 1;
  options.schedules = 1;
  options.check_determinism = false;
  return check(
      [&](World& world) {
        const Env env = make_env(world);
        Stream stream = world.make_stream("main");
        stream.launch<Kernel<Poll>>({1, 32}, {poll, env});
        stream.synchronize();
      },
      options);
}

/// The hang of a loop that polls, by name of the operation and with what it needs.
void expect_poll(const CheckResult& result, const std::string& operation, const std::string& needs) {
  ASSERT_EQ(result.findings.size(), 1U) << result.text();
  const Finding& hang = result.findings.front();
  EXPECT_EQ(hang.kind, "hang");
  ASSERT_FALSE(hang.sites.empty()) << result.text();
  const CheckSite& poll = hang.sites.back();  // after the last change of the word
  EXPECT_EQ(poll.operation, operation);
  EXPECT_EQ(poll.file, "tests/check/hang_test.cpp");
  EXPECT_GT(poll.line, 0);
  EXPECT_EQ(poll.pe, 0);
  EXPECT_LT(poll.occurrence, 100'000) << result.text();  // no millions of looks
  EXPECT_THAT(hang.missing, HasSubstr(needs));
  EXPECT_THAT(hang.missing, HasSubstr("no PE is left to change it"));
}

TEST(Hang, NamesALoopThatPollsForWhatNeverComes) {
  expect_poll(check_poll([](auto& block, const Env& e) {
                while (block.load_scalar(&e.words.local()->value) == 0) continue;
              }),
              "load_scalar", "words[0] on PE 0 is 0, the loop that polls it needs != 0");
  expect_poll(check_poll([](auto& block, const Env& e) {
                while (!block.signal_test(e.words, Cmp::kGe, 1)) continue;
              }),
              "signal_test", "words[0] on PE 0 is 0, the loop that polls it needs >= 1");
  expect_poll(check_poll([](auto& block, const Env& e) {
                block.exchange(e.cell.local(), Epoch{1});
                while (block.compare_swap(e.cell.local(), Epoch{0}, Epoch{1}) != 0) continue;
              }),
              "atomic", "cell[0] on PE 0 is 1, the loop that polls it needs != 1");
  // Two words in turn, of which the second is remote for one of two PEs.
  const Finding both = hang_of(2, [](auto& block, const Env& e) {
    while (block.load_scalar(e.cell.local()) == 0 && block.load_scalar(e.cell.on(1) + 1) == 0) continue;
  });
  EXPECT_THAT(both.missing, HasSubstr("no PE is left to change it"));
}

/// A polling loop of loads takes time, so that its signal can come. A loop with other work in it does not poll.
TEST(Hang, IsNoneWhereAPollEndsOrSomethingIsDone) {
  const auto run = [](const auto& body) {
    Simulation simulation(load_machine("h200x4"), 2);
    simulation.run([&](World& world) {
      const Env env = make_env(world);
      Stream stream = world.make_stream("main");
      stream.launch<Kernel<std::decay_t<decltype(body)>>>({1, 32}, {body, env});
      stream.synchronize();
    });
    return simulation.time_us();
  };
  // Without a checker, too, a loop of loads sees what comes.
  run([](auto& block, const Env& e) {
    if (block.pe() == 0) block.notify(e.words, 1, 1);
    if (block.pe() == 1)
      while (block.load_scalar(&e.words.local()->value) == 0) continue;
  });
  const double ends = run([](auto& block, const Env& e) {
    for (int i = 0; i < 60'000; ++i) {
      block.store_scalar(e.local + 1, 1.0F);
      (void)block.load_scalar(e.local);
    }
  });
  EXPECT_GT(ends, 0);
  EXPECT_THROW(run([](auto& block, const Env& e) {
                 while (block.load_scalar(&e.words.local()->value) == 0) continue;
               }),
               Deadlock);
}

/// A loop that changes the polled word is found by its length, and named too.
TEST(Hang, NamesALoopThatNeverEnds) {
  const CheckResult result = check_poll([](auto& block, const Env& e) {
    while (block.load_scalar(e.local) != 2) block.store_scalar(e.local, 1.0F);
  });
  ASSERT_THAT(result, has_finding("hang"));
  ASSERT_EQ(result.findings.front().sites.size(), 1U) << result.text();
  EXPECT_EQ(result.findings.front().sites[0].pe, 0);
  EXPECT_THAT(result.findings.front().missing, HasSubstr("a loop that never ends"));
  EXPECT_LT(result.findings.front().sites[0].occurrence, 1'100'000);
}

/// Signals cost most of all operations.
TEST(Hang, IsALoopOfSignalsThatNeverEnds) {
  const CheckResult result = check_poll([](auto& block, const Env& e) {
    while (block.pe() == 0) block.notify(e.words, 1, 0, SignalOp::kAdd);
  });
  ASSERT_THAT(result, has_finding("hang"));
  ASSERT_EQ(result.findings.front().sites.size(), 1U) << result.text();
  EXPECT_EQ(result.findings.front().sites[0].operation, "notify");
  EXPECT_LT(result.findings.front().sites[0].occurrence, 1'100'000);
}

/// A plain store satisfies the comparison, but lets no wait go on.
TEST(Hang, TellsOfAWordThatWasStoredTo) {
  const Finding finding = hang_of(2, [](auto& block, const Env& e) {
    if (block.pe() == 1) block.wait(e.words, 1, 1);
    if (block.pe() == 0) block.store_scalar(&e.words.on(1)->value, Epoch{1});
  });
  EXPECT_THAT(finding.missing, HasSubstr("words[0] on PE 1 is 1, the wait needs >= 1, which a plain store brought"));
}

struct Nothing {
  void operator()(auto&, const Env&) const {}
};
struct WaitForWord {
  void operator()(auto& block, const Env& e) const { block.wait(e.words, 1, 1); }
};
struct NotifyNext {
  void operator()(auto& block, const Env& e) const { block.notify(e.words, 1, (block.pe() + 1) % block.num_pes()); }
};

/// Runs a program of two streams on all PEs, under enough schedules for all orders that hardware allows.
template <class Program>
CheckResult check_streams(int pes, const Program& program) {
  CheckOptions options;
  options.pes = pes;
  return check(
      [&](World& world) {
        const Env env = make_env(world);
        Stream main = world.make_stream("main");
        Stream side = world.make_stream("side");
        const auto launch = [&]<class Body>(Stream& stream, const Body& body, Grid grid = {1, 32}) {
          stream.launch<Kernel<Body>>(grid, {body, env});
        };
        program(world, main, side, launch);
        main.synchronize();
        side.synchronize();
      },
      options);
}

/// A kernel behind a wait may take all SMs before the wait is over, and with them the place of what peers wait for.
TEST(Hang, IsFoundWhereTheKernelBehindAWaitTakesThePlaceOfWhatPeersWaitFor) {
  for (const bool sends_first : {false, true}) {
    const CheckResult result = check_streams(2, [&](World& world, Stream& main, Stream& side, const auto& launch) {
      Stream before = world.make_stream("before");  // so that the send comes after the wait began
      launch(before, Nothing{});
      side.wait_for(before);
      launch(side, NotifyNext{});
      if (sends_first) main.wait_for(side);
      launch(main, WaitForWord{});
      launch(main, Nothing{}, {2 * world.machine().gpu.sm_count, 1024});
    });
    ASSERT_EQ(result.findings.size(), sends_first ? 0 : 1) << result.text();
    if (sends_first) continue;
    EXPECT_EQ(result.findings[0].kind, "hang");
    EXPECT_THAT(result.findings[0].missing, HasSubstr("has taken its places (programmatic dependent launch)"));
  }
}

/// A kernel that waits beside a GEMM for its successor may start before the GEMM has all its SMs.
TEST(Hang, IsFoundWhereWhatWaitsForAGemmTakesOneOfItsSms) {
  for (const bool leaves_one : {false, true}) {
    const CheckResult result = check_streams(1, [&](World& world, Stream& main, Stream& side, const auto& launch) {
      constexpr Size kSide = 16;
      Gemm gemm;
      gemm.m = gemm.n = gemm.k = gemm.tile_m = gemm.tile_n = kSide;
      gemm.type = gemm.out_type = DType::kF32;
      const std::vector<float> ones(kSide * kSide, 1);
      const auto matrix = [&](const char* name) {
        float* const memory = world.heap().allocate_local<float>(kSide * kSide, name);
        world.copy_in(memory, ones.data(), kSide * kSide * Size{sizeof(float)});
        return memory;
      };
      gemm.a = matrix("a");
      gemm.b = matrix("b");
      gemm.destination = GemmLocal{matrix("c")};
      gemm.sms = world.machine().gpu.sm_count - (leaves_one ? 1 : 0);
      launch(main, Nothing{});
      side.wait_for(main);
      main.gemm(gemm, world.team());
      launch(main, NotifyNext{});
      launch(side, WaitForWord{});
    });
    ASSERT_EQ(result.findings.empty(), leaves_one) << result.text();
    if (leaves_one) continue;
    EXPECT_EQ(result.findings[0].kind, "hang");
  }
}

/// All blocks wait for the last one. Its registers are bounded for as many on an SM as `BlocksPerSm` says.
template <int BlocksPerSm>
struct WaitsForLast {
  static constexpr int kBlocksPerSm = BlocksPerSm;
  struct Args {
    Signals words;
  };
  template <class Block>
  static void run(Block& block, const Args& a) {
    if (block.index() + 1 == block.count()) block.notify(a.words, 1, block.pe());
    block.wait(a.words, 1, 1);
  }
};

TEST(Hang, IsFoundWhereMoreBlocksWaitThanTheirRegistersMayLeaveRoomFor) {
  const auto check_grid = [](auto kernel) {
    return check_streams(1, [](World& world, Stream& main, Stream&, const auto&) {
      main.launch<decltype(kernel)>({2 * world.machine().gpu.sm_count, 512}, {world.heap().signals(1, "last")});
    });
  };
  EXPECT_THAT(check_grid(WaitsForLast<1>{}), has_finding("hang"));
  EXPECT_THAT(check_grid(WaitsForLast<2>{}), is_clean());
}

/// Where streams share a hardware queue, what cannot start yet holds up all that was enqueued behind it.
TEST(Hang, IsFoundWhereWorkIsEnqueuedBehindWhatWaitsForIt) {
  for (const bool notifies_first : {false, true}) {
    const CheckResult result = check_streams(1, [&](World&, Stream& main, Stream& side, const auto& launch) {
      if (notifies_first) launch(side, NotifyNext{});
      launch(main, WaitForWord{});
      launch(main, Nothing{});
      if (!notifies_first) launch(side, NotifyNext{});
    });
    ASSERT_EQ(result.findings.size(), notifies_first ? 0 : 1) << result.text();
    if (notifies_first) continue;
    EXPECT_EQ(result.findings[0].kind, "hang");
    EXPECT_THAT(result.findings[0].missing, HasSubstr("may not start: streams share a hardware queue"));
  }
}

/// Where kernels run one at a time, a kernel waits in vain for one that was enqueued behind it in another stream.
TEST(Hang, IsFoundWhereAKernelWaitsForOneEnqueuedLater) {
  for (const bool notifies_first : {false, true}) {
    const CheckResult result = check_streams(1, [&](World&, Stream& main, Stream& side, const auto& launch) {
      if (notifies_first) launch(side, NotifyNext{});
      launch(main, WaitForWord{});
      if (!notifies_first) launch(side, NotifyNext{});
    });
    ASSERT_EQ(result.findings.size(), notifies_first ? 0 : 1) << result.text();
    if (notifies_first) continue;
    EXPECT_EQ(result.findings[0].kind, "hang");
    EXPECT_THAT(result.findings[0].missing, HasSubstr("may not start: kernels of a PE run one at a time"));
  }
}

}  // namespace

}  // namespace tandem::check_test
