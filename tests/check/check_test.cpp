// tandem::check itself: options, strategies, replay, results; and what it is made of.

#include "tandem/check.h"

#include <gtest/gtest.h>

#include "check/conformance.h"
#include "check/schedules.h"
#include "check/shadow.h"
#include "tandem/advanced/check_matcher.h"
#include "tandem/error.h"

namespace tandem::check_test {

namespace {

template <class Body>
std::function<void(World&)> program_of(const Body& body) {
  return [body](World& world) {
    const Env env = make_env(world);
    Stream stream = world.make_stream("main");
    stream.launch<Kernel<Body>>({1, 64}, {body, env});
    stream.synchronize();
  };
}

/// Hangs only where both signals come before the first look.
std::function<void(World&)> hangs_sometimes() {
  return program_of([](auto& block, const Env& e) {
    if (block.pe() == 0) {
      block.notify(e.words, 1, 1);
      block.signal_wait_until(e.words + 1, Cmp::kEq, 1);
      block.notify(e.words, 2, 1);
    }
    if (block.pe() == 2) block.notify(e.words + 1, 1, 0);
    if (block.pe() == 1) block.signal_wait_until(e.words, Cmp::kEq, 1);
  });
}

TEST(Check, AFindingIsSeenAgainWithItsSeed) {
  for (const Strategy strategy : {Strategy::kRandom, Strategy::kPct, Strategy::kDelay, Strategy::kDfs}) {
    CheckOptions options;
    options.pes = 3;
    options.strategy = strategy;
    options.schedules = 300;
    options.stop_at_first = true;
    options.replay = "my_test";
    const CheckResult result = check(hangs_sometimes(), options);
    ASSERT_THAT(result, has_finding("hang")) << name(strategy);
    const Finding& finding = result.findings.front();
    EXPECT_EQ(finding.replay, "my_test --strategy " + std::string(name(strategy)) + " --seed " +
                                  std::to_string(finding.seed) + " --schedules 1");
    options.seed = finding.seed;
    options.schedules = 1;
    const CheckResult again = check(hangs_sometimes(), options);
    ASSERT_EQ(again.findings.size(), result.findings.size()) << name(strategy);
    EXPECT_EQ(again.text(), result.text());
  }
}

TEST(Check, WithoutACommandAReplayIsGivenAsOptions) {
  CheckOptions options;
  options.pes = 3;
  options.strategy = Strategy::kPct;
  options.schedules = 300;
  options.stop_at_first = true;
  const CheckResult result = check(hangs_sometimes(), options);
  ASSERT_THAT(result, has_finding("hang"));
  EXPECT_EQ(result.findings[0].replay, "CheckOptions{.schedules = 1, .strategy = Strategy::kPct, .seed = " +
                                           std::to_string(result.findings[0].seed) + "}, all others as they were");
}

struct SeenByTheReader {
  Epoch turn = 0;        // before the compare_swap
  bool swapped = false;  // both found 0
};

/// Block 0 takes an unchanged value for an unchanged world. Block 1 changes the value and changes it back. That
/// takes more atomics than block 0 has time for, unless a schedule delays block 0 between two of its own.
std::function<void(World&)> changes_and_changes_back(SeenByTheReader& seen) {
  return [&seen](World& world) {
    const Env env = make_env(world);
    const auto body = [to = &seen](auto& block, const Env& e) {
      Epoch* const value = e.cell.local();
      Epoch* const turn = e.cell.local() + 1;
      if (block.index() == 0) {
        const Epoch read = block.fetch_add(value, Epoch{0});
        to->turn = block.fetch_add(turn, Epoch{0});
        to->swapped = block.compare_swap(value, Epoch{0}, Epoch{9}) == 0 && read == 0;
        return;
      }
      const bool is_first = block.exchange(value, Epoch{1}) == 0;
      for (int i = 0; i < 3; ++i) block.fetch_add(turn, Epoch{1});
      block.exchange(value, Epoch{0});
      if (!is_first) to->swapped = false;  // the compare_swap came before
    };
    Stream stream = world.make_stream("main");
    stream.launch<Kernel<std::decay_t<decltype(body)>>>({2, 64}, {body, env});
    stream.synchronize();
  };
}

TEST(Check, HoldsUpABlockBetweenTwoAtomics) {
  SeenByTheReader seen;
  CheckOptions options;
  options.pes = 1;
  options.schedules = 200;
  options.stop_at_first = true;
  options.verify = [&](World&) { return seen.turn == 0 && seen.swapped ? "the value came back" : ""; };
  EXPECT_THAT(check(changes_and_changes_back(seen), options), has_finding("wrong_result"));
}

/// Block 0 sees both values at their beginning and at their end. Block 1 changes the first one first, so that takes
/// more changes than block 0 has time for, unless a schedule delays block 0 between its two looks.
template <class Look>
std::function<void(World&)> looks_twice(bool& saw_old_and_new, const Look& look) {
  return [&saw_old_and_new, look](World& world) {
    const Signals words = world.heap().signals(2, "words");
    const auto body = [look, words, saw = &saw_old_and_new](auto& block, const Env&) {
      if (block.index() == 0) {
        const bool is_old = look(block, words, Epoch{0});
        *saw = look(block, words + 1, Epoch{4}) && is_old;
        return;
      }
      block.exchange(&words.local()->value, Epoch{1});
      for (int i = 0; i < 4; ++i) block.fetch_add(&words.local()[1].value, Epoch{1});
    };
    Stream stream = world.make_stream("main");
    stream.launch<Kernel<std::decay_t<decltype(body)>>>({2, 64}, {body, make_env(world)});
    stream.synchronize();
  };
}

TEST(Check, HoldsUpABlockBetweenTwoLooks) {
  bool saw = false;
  CheckOptions options;
  options.pes = 1;
  options.schedules = 200;
  options.verify = [&](World&) { return saw ? "old and new" : ""; };
  const auto by_test = [](auto& block, Signals word, Epoch value) { return block.signal_test(word, Cmp::kEq, value); };
  const auto by_load = [](auto& block, Signals word, Epoch value) {
    return block.load_scalar(&word.local()->value) == value;
  };
  EXPECT_THAT(check(looks_twice(saw, by_test), options), has_finding("wrong_result"));
  EXPECT_THAT(check(looks_twice(saw, by_load), options), has_finding("wrong_result"));
}

/// Nothing that a program throws loses what was found before, nor the seed.
TEST(Check, MakesFindingsOfExceptions) {
  const auto finds_and_throws = [](const std::function<void()>& throws) {
    return [throws](World& world) {
      const Env env = make_env(world);
      Stream stream = world.make_stream("main");
      const auto body = [](auto& block, const Env& e) {
        if (block.pe() != 1) block.store_scalar(e.data.on(1), 1.0F);
      };
      stream.launch<Kernel<std::decay_t<decltype(body)>>>({1, 64}, {body, env});
      stream.synchronize();
      world.barrier();
      if (world.pe() == 1) throws();
    };
  };
  CheckOptions options;
  options.pes = 3;
  options.schedules = 2;
  struct Case {
    std::function<void()> throws;
    const char* says;
  };
  for (const Case& one : {Case{[] { throw InvalidArgument("PE: -1 given"); }, "PE 1 host program: PE: -1 given"},
                          Case{[] { throw Unsupported("not here"); }, "PE 1 host program: not here"},
                          Case{[] { throw std::runtime_error("out of luck"); }, "PE 1 host program: out of luck"},
                          Case{[] { throw 7; }, "PE 1 host program: an exception that is no std::exception"}}) {
    const CheckResult result = check(finds_and_throws(one.throws), options);
    EXPECT_THAT(result, has_finding("unordered_writes"));
    ASSERT_THAT(result, has_finding("error"));
    ASSERT_EQ(result.findings.size(), 2U) << result.text();
    EXPECT_EQ(result.findings[1].missing, one.says);
    EXPECT_EQ(result.findings[1].seed, 1U);
    EXPECT_FALSE(result.findings[1].replay.empty());
  }
  EXPECT_THROW(check(finds_and_throws([] { throw OutOfMemory("none left"); }), options), OutOfMemory);
  options.before = [] { throw InvalidArgument("too early"); };
  EXPECT_THAT(check(finds_and_throws([] {}), options), has_finding("error"));
}

/// After an error memory may hold anything, so that the second run need not be the same.
TEST(Check, DoesNotBlameAnErrorForWhatComesAfterIt) {
  CheckOptions options;
  options.pes = 1;
  options.schedules = 1;
  int run = 0;
  const CheckResult result = check(
      [&run](World&) {
        if (run++ == 0) throw InvalidArgument("at first");
      },
      options);
  EXPECT_EQ(result.findings.size(), 1U) << result.text();
  EXPECT_THAT(result, has_finding("error"));
}

TEST(Check, IsPrintedAsText) {
  CheckOptions options;
  options.pes = 2;
  options.schedules = 2;
  const CheckResult result = check(program_of([](auto&, const Env&) {}), options);
  EXPECT_EQ(::testing::PrintToString(result), "clean under 2 schedules\n");
}

TEST(Check, DfsComesToAnEnd) {
  CheckOptions options;
  options.pes = 2;
  options.strategy = Strategy::kDfs;
  options.schedules = 100000;
  const auto program = program_of([](auto& block, const Env& e) {
    block.notify(e.words, 1, 1 - block.pe());
    block.wait(e.words, 1, 1);
  });
  const CheckResult result = check(program, options);
  EXPECT_TRUE(result.exhausted);
  EXPECT_GT(result.schedules, 20);
  EXPECT_THAT(result, is_clean());
  EXPECT_NE(result.text().find("dfs is exhausted"), std::string::npos);
  options.schedules = result.schedules;  // to the last one
  EXPECT_TRUE(check(program, options).exhausted);
  --options.schedules;
  const CheckResult part = check(program, options);
  EXPECT_FALSE(part.exhausted);
  EXPECT_NE(part.text().find("dfs is not exhausted"), std::string::npos);
}

TEST(Check, ShowsWrongResultsAndWhatDependsOnMoreThanTheSeed) {
  CheckOptions options;
  options.pes = 2;
  options.schedules = 2;
  const auto nothing = program_of([](auto&, const Env&) {});
  options.verify = [](World& world) { return world.pe() == 1 ? std::string("a digit is wrong") : std::string(); };
  const CheckResult wrong = check(nothing, options);
  ASSERT_THAT(wrong, has_finding("wrong_result"));
  EXPECT_EQ(wrong.findings.front().missing, "a digit is wrong");
  EXPECT_EQ(wrong.findings.front().pes, std::vector<int>{1});
  EXPECT_THAT(wrong.findings.front().text(), ::testing::StartsWith("wrong_result\n  a digit is wrong\n  replay: "));

  options.verify = nullptr;
  int run = 0;
  const auto forgetful = [&run](World& world) {
    const Env env = make_env(world);
    const int blocks = 1 + run++ / 2;
    Stream stream = world.make_stream("main");
    const auto body = [](auto& block, const Env& e) { block.store_scalar(e.local + block.index(), 1.0F); };
    stream.launch<Kernel<std::decay_t<decltype(body)>>>({blocks, 64}, {body, env});
    stream.synchronize();
  };
  EXPECT_THAT(check(forgetful, options), has_finding("nondeterminism"));
}

TEST(Check, RefusesWhatCannotBe) {
  const auto nothing = program_of([](auto&, const Env&) {});
  CheckOptions options;
  options.pes = 33;
  EXPECT_THROW(check(nothing, options), InvalidArgument);
  options.pes = 2;
  options.schedules = 0;
  EXPECT_THROW(check(nothing, options), InvalidArgument);
  options.schedules = 1;
  options.tile_bytes = 0;
  EXPECT_THROW(check(nothing, options), InvalidArgument);
  EXPECT_THROW(parse_strategy("best"), InvalidArgument);
}

TEST(Schedules, DfsEnumeratesEveryPairOnce) {
  EXPECT_EQ(checker::dfs_schedules(0), 1U);
  EXPECT_EQ(checker::dfs_schedules(4), 1U + 4U + 6U);
  std::set<std::vector<int>> seen;
  for (std::uint64_t seed = 1; seed <= checker::dfs_schedules(4); ++seed) {
    const auto schedule = checker::make_schedule({.pes = 2, .strategy = Strategy::kDfs}, seed, 4);
    std::vector<int> late;
    for (int point = 0; point < 4; ++point)
      if (schedule->delay(sim::Schedule::Point::kPut, 0) > 0) late.push_back(point);
    EXPECT_LE(late.size(), 2U);
    EXPECT_TRUE(seen.insert(late).second) << seed;
  }
}

TEST(Clock, JoinsMeetsAndCovers) {
  checker::Clock a, b;
  a.set(0, 3);
  a.set(2, 1);
  b.set(0, 1);
  b.set(1, 5);
  checker::Clock both = a;
  both.join(b);
  EXPECT_TRUE(both.covers({0, 3}) && both.covers({1, 5}) && both.covers({2, 1}));
  EXPECT_FALSE(both.covers({2, 2}) || both.covers({7, 1}));
  both.meet(b);
  EXPECT_EQ(both.of(0), 1U);
  EXPECT_EQ(both.of(1), 5U);
  EXPECT_EQ(both.of(2), 0U);
}

TEST(Shadow, CutsIntervalsAndKeepsEveryReader) {
  checker::Shadow shadow;
  Size cells = 0;
  checker::Clock none, writer;
  const auto touch = [&](Range bytes, checker::Slot slot, checker::Role role, const checker::Clock& after) {
    checker::NewAccess access;
    access.record = {{slot, 1}, slot, role, false, false};
    access.after = &after;
    std::vector<checker::Conflict> conflicts;
    shadow.access(bytes, access, conflicts, cells);
    return conflicts;
  };
  EXPECT_TRUE(touch({0, 100}, 1, checker::Role::kWrite, none).empty());
  EXPECT_EQ(touch({40, 60}, 2, checker::Role::kRead, none).size(), 1U);
  writer.set(1, 1);
  EXPECT_TRUE(touch({50, 120}, 3, checker::Role::kRead, writer).empty());
  // A later write meets the two readers where they read, and the first write nowhere.
  const auto conflicts = touch({0, 200}, 4, checker::Role::kWrite, writer);
  Size met = 0;
  for (const auto& conflict : conflicts) met += conflict.bytes.size() * conflict.first.info;
  EXPECT_EQ(met, 20 * 2 + 70 * 3);
  EXPECT_TRUE(touch({200, 300}, 5, checker::Role::kAtomicWrite, none).empty());
  EXPECT_TRUE(touch({250, 300}, 6, checker::Role::kAtomicWrite, none).empty());
  EXPECT_EQ(touch({200, 300}, 7, checker::Role::kRead, none).size(), 3U);
}

}  // namespace

}  // namespace tandem::check_test
