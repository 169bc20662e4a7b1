// Reports of races: which launch, which time, which wait passed with which value, and what is too weak.

#include <gtest/gtest.h>

#include "check/conformance.h"
#include "tandem/advanced/check_matcher.h"

namespace tandem::check_test {

namespace {

using ::testing::HasSubstr;
using ::testing::Not;

template <class... Bodies>
CheckResult check_bodies(int pes, const Bodies&... bodies) {
  CheckOptions options;
  options.pes = pes;
  options.schedules = 8;
  return check(
      [&](World& world) {
        const Env env = make_env(world);
        Stream stream = world.make_stream("main");
        (stream.launch<Kernel<Bodies>>({1, 64}, {bodies, env}), ...);
        stream.synchronize();
      },
      options);
}

Finding first_of(const CheckResult& result, const std::string& kind) {
  for (const Finding& finding : result.findings)
    if (finding.kind == kind) return finding;
  ADD_FAILURE() << "no " << kind << ": " << result.text();
  return {};
}

/// PE 0 sends four slots, PE 1 waits for `behind` fewer than it needs.
auto rounds(Epoch behind) {
  return [behind](auto& block, const Env& e) {
    for (Epoch epoch = 1; epoch <= 4; ++epoch) {
      const Symm<float> slot = e.data + static_cast<Size>(epoch - 1) * 8;
      if (block.pe() == 0) {
        block.put(slot, e.local, 8, 1);
        block.notify(e.words, epoch, 1);
      }
      if (block.pe() != 1 || epoch <= behind) continue;
      block.wait(e.words, 1, epoch - behind);
      block.store(e.result, {0, 8}, block.template load<float>(slot.local(), {0, 8}));
    }
  };
}

TEST(Report, NamesTheWaitThatPassesWithAnOldValue) {
  const Finding race = first_of(check_bodies(2, rounds(1)), "read_before_write_is_visible");
  EXPECT_THAT(race.missing, HasSubstr("the reader must wait for a signal that the writer sends after the data"));
  EXPECT_THAT(race.missing, HasSubstr("the wait at tests/check/report_test.cpp:"));
  EXPECT_THAT(race.missing, HasSubstr("(>= 1) may have passed with value 1, sent by the notify at "));
  EXPECT_THAT(race.missing, HasSubstr("(launch 1, occurrence 1), which does not carry this write"));
}

TEST(Report, NamesTheLaunchAndWhichTime) {
  const auto first = [](auto& block, const Env& e) {
    for (int i = 0; i < 3; ++i)
      if (block.pe() == 0) block.put(e.data + i, e.local, 1, 1);
  };
  const auto second = [](auto& block, const Env& e) {
    if (block.pe() == 1) block.store_scalar(e.result, block.load_scalar(e.data.local() + 2));
  };
  const CheckResult result = check_bodies(2, second, first, first);
  const Finding race = first_of(result, "write_before_read_is_over");
  EXPECT_EQ(race.sites[0].launch, 1);
  EXPECT_EQ(race.sites[1].launch, 1);
  EXPECT_EQ(race.sites[1].occurrence, 3) << race.text();
  EXPECT_THAT(race.text(), HasSubstr(", launch 1, occurrence 3\n"));
  // The same line twice, of two launches between which nothing is complete.
  const auto sends = [](auto& block, const Env& e) {
    if (block.pe() == 0) block.put_nbi(e.data, e.local, kN, 1);
  };
  const Finding writes = first_of(check_bodies(2, sends, sends), "unordered_writes");
  EXPECT_EQ(writes.sites[0].launch, 1) << writes.text();
  EXPECT_EQ(writes.sites[1].launch, 2) << writes.text();
}

/// One word, several puts under way, and >=: the value of a later one lets the wait for an earlier one pass.
TEST(Report, NamesTheLaterPutSignalThatLetsAWaitPass) {
  const CheckResult result = check_bodies(2, [](auto& block, const Env& e) {
    for (Epoch epoch = 1; epoch <= 2; ++epoch) {
      const Symm<float> slot = e.data + static_cast<Size>(epoch - 1) * 8;
      if (block.pe() == 0) block.put_signal(slot, e.local, 8, e.words, epoch, 1);
      if (block.pe() != 1) continue;
      if (epoch == 1) be_late(block, e);
      block.wait(e.words, 1, epoch);
      block.store(e.result, {0, 8}, block.template load<float>(slot.local(), {0, 8}));
    }
  });
  const Finding race = first_of(result, "read_before_write_is_visible");
  EXPECT_THAT(race.missing, HasSubstr("orders its own data only"));
  EXPECT_THAT(race.missing, HasSubstr("(>= 1) pass with value 2"));
}

/// A kernel that signals comes after earlier kernels of its stream, and after the signals that it waited for.
TEST(Report, NamesARelaxedSignalAfterAnEarlierKernelAndOfARelay) {
  const auto tells = [](auto& block, const Env& e) {
    if (block.pe() == 0) block.signal(e.words, 1, 1);
  };
  const auto reads = [](auto& block, const Env& e) {
    if (block.pe() == 1) {
      block.wait(e.words, 1, 1);
      read(block, e, e.data.local());
    }
  };
  const auto puts = [](auto& block, const Env& e) {
    if (block.pe() == 0) write(block, e.data.on(1));
  };
  EXPECT_THAT(first_of(check_bodies(2, puts, tells, reads), "read_before_write_is_visible").missing,
              HasSubstr("the signal at"));
  const CheckResult relay = check_bodies(3, [](auto& block, const Env& e) {
    if (block.pe() == 0) {
      put(block, e);
      block.notify(e.words, 1, 2);
    }
    if (block.pe() == 2) {
      block.wait(e.words, 1, 1);
      block.signal(e.words, 1, 1);
    }
    if (block.pe() != 1) return;
    block.wait(e.words, 1, 1);
    read(block, e, e.data.local());
  });
  EXPECT_THAT(first_of(relay, "read_before_write_is_visible").missing, HasSubstr("the signal at"));
  EXPECT_THAT(first_of(relay, "read_before_write_is_visible").missing, HasSubstr("is relaxed"));
}

/// A put_signal is no credit.
TEST(Report, NamesWhatTellsThatReadsAreOver) {
  for (const bool puts : {false, true}) {
    const CheckResult result = check_bodies(2, [puts](auto& block, const Env& e) {
      if (block.pe() == 0) {
        block.wait(e.words, 1, 1);
        put(block, e);
      }
      if (block.pe() != 1) return;
      read(block, e, e.data.local());
      if (puts) block.put_signal(e.other, e.local, kN, e.words, 1, 0);
      if (!puts) block.signal(e.words, 1, 0);
    });
    const Finding race = first_of(result, "write_before_read_is_over");
    EXPECT_THAT(race.missing, HasSubstr("does not tell that reads are over: `signal_after_reads` or `notify`"));
    EXPECT_THAT(race.missing, Not(HasSubstr("`put_signal` in its place")));
  }
}

TEST(Report, CallsPlainDataNoSignalWord) {
  const CheckResult result = check_bodies(2, [](auto& block, const Env& e) {
    if (block.pe() == 0) block.fetch_add(e.cell.on(1), Epoch{1});
    if (block.pe() == 1) block.store_scalar(e.cell.local(), Epoch{5});
  });
  ASSERT_FALSE(result.clean());
  for (const Finding& finding : result.findings) {
    EXPECT_EQ(finding.buffer, "cell[0] on PE 1") << finding.text();
    EXPECT_TRUE(finding.signal.empty()) << finding.text();
    EXPECT_THAT(finding.missing, HasSubstr("one of the two is no atomic"));
    EXPECT_THAT(finding.missing, Not(HasSubstr("signal word")));
  }
}

TEST(Report, NamesTheSizesOfAtomicsThatOverlap) {
  const CheckResult result = check_bodies(2, [](auto& block, const Env& e) {
    if (block.pe() == 0) block.fetch_add(e.cell.on(1), Epoch{1});
    if (block.pe() == 1) block.fetch_add(reinterpret_cast<std::uint32_t*>(e.cell.local()) + 1, 1U);
  });
  ASSERT_FALSE(result.clean());
  EXPECT_THAT(result.findings[0].missing, HasSubstr("one size for all atomics of a word"));
}

TEST(Report, NamesTheValuesOfASignalRace) {
  const CheckResult result = check_bodies(3, [](auto& block, const Env& e) {
    if (block.pe() == 0) block.notify(e.words, 7, 1);
    if (block.pe() == 2) block.notify(e.words, 9, 1);
  });
  const Finding race = first_of(result, "signal_race");
  EXPECT_THAT(race.missing, HasSubstr("the SET to 7"));
  EXPECT_THAT(race.missing, HasSubstr("the SET to 9"));
}

}  // namespace

}  // namespace tandem::check_test
