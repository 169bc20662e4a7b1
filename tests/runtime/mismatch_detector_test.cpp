// Comparison of the PEs' calls of their plans, on the host.
#include "runtime/mismatch_detector.h"

#include <gmock/gmock.h>

#include <array>
#include <thread>

#include "tandem/error.h"

namespace tandem {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

/// The logs of a world's PEs.
struct Logs {
  explicit Logs(int pes) : records(pes) {
    for (int pe = 0; pe < pes; ++pe)
      logs.push_back(std::make_unique<MismatchDetector>(
          pe, [this](int other, std::size_t plan) { return records.of(other, plan); },
          [this](const std::string& text) { reported.push_back(text); }));
  }

  MismatchDetector& operator[](int pe) { return *logs[static_cast<std::size_t>(pe)]; }
  /// One plan of all PEs.
  void add(const std::string& what) {
    const int pes = static_cast<int>(logs.size());
    for (int pe = 0; pe < pes; ++pe) (*this)[pe].add(what, {0, 1, pes, pe, pes});
  }

  CallRecords records;
  std::vector<std::string> reported;
  std::vector<std::unique_ptr<MismatchDetector>> logs;
};

std::string error_of(MismatchDetector& log, std::size_t plan, Size count) {
  try {
    log.note(plan, count);
  } catch (const InvalidArgument& error) {
    return error.what();
  }
  return "";
}

TEST(MismatchDetector, CallsThatAreAlikePassInAnyOrder) {
  Logs logs(3);
  logs.add("all_reduce");
  logs.add("broadcast");
  for (const int pe : {2, 0, 1})
    for (Size call = 0; call < 1000; ++call) {
      // The first PEs come with calls that others have not come to, or have forgotten.
      EXPECT_EQ(error_of(logs[pe], 0, call), "");
      EXPECT_EQ(error_of(logs[pe], 1, 2 * call), "");
    }
  EXPECT_TRUE(logs.reported.empty());
  EXPECT_EQ(logs[1].apart(), "");
}

TEST(MismatchDetector, NearPesFindADifferenceBeforeTheFirstPeHasCalled) {
  CallRecords records(3);
  const auto log = [&](int pe, const std::function<bool(int)>& is_near) {
    auto made = std::make_unique<MismatchDetector>(
        pe, [&](int other, std::size_t plan) { return records.of(other, plan); }, nullptr, is_near);
    made->add("all_reduce", {0, 1, 3, pe, 3});
    return made;
  };
  const auto first = log(1, [](int) { return true; }), near = log(2, [](int) { return true; }), far = log(2, nullptr);
  EXPECT_EQ(error_of(*first, 0, 64), "");
  EXPECT_EQ(error_of(*far, 0, 65), "") << "it looks at PE 0 alone";
  far->take_back(0);
  EXPECT_THAT(error_of(*near, 0, 65), AllOf(HasSubstr("PE 2 calls"), HasSubstr("PE 1 all_reduce with count 64")));
}

TEST(MismatchDetector, NumbersGoOnWhereTheirLowerHalfComesRound) {
  Logs logs(2);
  logs.add("all_reduce");
  for (int pe : {0, 1}) logs.records.of(pe, 0)->made = (std::uint64_t{1} << 32) - 3;
  // The call of number 2^32 finds no call of the other PE, whose place holds what it does before a call and within one.
  for (int call = 0; call < 5; ++call) EXPECT_EQ(error_of(logs[0], 0, call), "");
  for (int call = 0; call < 4; ++call) EXPECT_EQ(error_of(logs[1], 0, call), "");
  EXPECT_THAT(error_of(logs[1], 0, 7), HasSubstr("call 4294967298 of a plan"));
}

TEST(MismatchDetector, AnotherCountIsFoundByWhoComesLater) {
  for (const bool first_is_later : {false, true}) {
    Logs logs(2);
    logs.add("all_reduce ring bf16 sum");
    for (int pe = 0; pe < 2; ++pe) EXPECT_EQ(error_of(logs[pe], 0, 64), "");
    const int later = first_is_later ? 0 : 1;
    EXPECT_EQ(error_of(logs[1 - later], 0, 1000), "");
    EXPECT_THAT(error_of(logs[later], 0, 999),
                AllOf(HasSubstr("call 2 of a plan"),
                      HasSubstr("PE " + std::to_string(later) + " calls all_reduce ring bf16 sum with count 999"),
                      HasSubstr("PE " + std::to_string(1 - later) + " all_reduce ring bf16 sum with count 1000")));
    ASSERT_EQ(logs.reported.size(), 1U);
  }
}

TEST(MismatchDetector, WhereTwoDifferNotAllCanPass) {
  // In every order in which three PEs come, of which one differs.
  for (const int odd : {0, 1, 2})
    for (const std::array<int, 3>& order :
         {std::array{0, 1, 2}, {0, 2, 1}, {1, 0, 2}, {1, 2, 0}, {2, 0, 1}, {2, 1, 0}}) {
      Logs logs(3);
      logs.add("all_gather");
      int passed = 0;
      for (const int pe : order) passed += error_of(logs[pe], 0, pe == odd ? 7 : 8).empty() ? 1 : 0;
      EXPECT_LT(passed, 3) << odd;
    }
}

/// Two PEs of two hosts, with records of their own.
struct TwoHosts {
  TwoHosts() {
    for (int pe = 0; pe < 2; ++pe)
      logs.push_back(std::make_unique<MismatchDetector>(pe, [this, pe](int other, std::size_t plan) {
        return records[static_cast<std::size_t>(pe)].of(other, plan);
      }));
    for (int pe = 0; pe < 2; ++pe)
      for (const char* const what : {"all_reduce", "broadcast"}) log(pe).add(what, {0, 1, 2, pe, 2});
  }
  MismatchDetector& log(int pe) { return *logs[static_cast<std::size_t>(pe)]; }
  /// Sends the news of a PE to the other one, in messages of at most that size. Returns the error.
  std::string tell(int from, std::size_t most = 500) {
    try {
      for (Bytes news = log(from).news_for(1 - from, most); !news.empty(); news = log(from).news_for(1 - from, most)) {
        EXPECT_LE(news.size(), most);
        log(1 - from).take(from, news);
      }
    } catch (const InvalidArgument& error) {
      return error.what();
    }
    return "";
  }

  std::array<CallRecords, 2> records{CallRecords(2), CallRecords(2)};
  std::vector<std::unique_ptr<MismatchDetector>> logs;
};

TEST(MismatchDetector, NewsReachAnotherHostInAnyOrderOfCalls) {
  for (const bool calls_first : {false, true}) {
    TwoHosts hosts;
    for (Size call = 0; call < 600; ++call) {
      for (int pe = 0; pe < 2; ++pe) hosts.log(pe).note(1, call);
      if (call % 100 == 0) {
        EXPECT_EQ(hosts.tell(0), "");
        EXPECT_EQ(hosts.tell(1), "");
      }
    }
    hosts.log(0).note(0, 7);
    if (calls_first) {
      EXPECT_EQ(error_of(hosts.log(1), 0, 8), "");
    }
    std::string error = hosts.tell(0);
    if (!calls_first) {
      EXPECT_EQ(error, "");
      error = error_of(hosts.log(1), 0, 8);
    }
    EXPECT_THAT(error, AllOf(HasSubstr("PE 1 calls all_reduce with count 8"), HasSubstr("all_reduce with count 7")));
  }
}

TEST(MismatchDetector, NewsLeaveOutCallsThatWereTakenBack) {
  TwoHosts hosts;
  hosts.log(0).note(0, 7);
  EXPECT_EQ(hosts.tell(0), "");
  hosts.log(0).take_back(0);
  hosts.log(0).note(0, 8);
  EXPECT_EQ(hosts.tell(0), "");
  EXPECT_EQ(error_of(hosts.log(1), 0, 8), "");
}

/// Hosts compare plans with their first calls.
TEST(MismatchDetector, AnotherOperationIsNamed) {
  TwoHosts hosts;
  const std::size_t plan = hosts.log(0).add("all_reduce ring bf16 sum", {0, 1, 2, 0, 2});
  EXPECT_EQ(hosts.log(1).add("all_reduce ring bf16 max", {0, 1, 2, 1, 2}), plan);
  EXPECT_EQ(error_of(hosts.log(1), plan, 5), "");
  EXPECT_EQ(error_of(hosts.log(0), plan, 5), "");
  EXPECT_THAT(hosts.tell(0), AllOf(HasSubstr("PE 1 calls all_reduce ring bf16 max with count 5"),
                                   HasSubstr("PE 0 all_reduce ring bf16 sum with count 5")));
}

std::string error_of_plan(MismatchDetector& log, const std::string& what, const Team& team) {
  try {
    log.add(what, team);
  } catch (const InvalidArgument& error) {
    return error.what();
  }
  return "";
}

TEST(MismatchDetector, PlansThatDifferAreNamedWhenTheSecondOfThemIsMade) {
  for (const bool zero_first : {false, true}) {
    Logs logs(2);
    logs.add("all_gather");
    const auto add = [&](int pe) {
      return error_of_plan(logs[pe], pe == 0 ? "all_reduce sum" : "all_reduce max", {0, 1, 2, pe, 2});
    };
    EXPECT_EQ(add(zero_first ? 0 : 1), "");
    EXPECT_EQ(add(zero_first ? 1 : 0),
              zero_first
                  ? "PE 1: plans: PE 1 makes all_reduce max, PE 0 makes all_reduce sum; all PEs must make the same "
                    "plans in the same order"
                  : "PE 0: plans: PE 0 makes all_reduce sum, PE 1 makes all_reduce max; all PEs must make the same "
                    "plans in the same order");
    EXPECT_EQ(logs.reported.size(), 1U);
  }
}

TEST(MismatchDetector, PlansOfAnotherTeamAreNamed) {
  Logs logs(3);
  EXPECT_EQ(error_of_plan(logs[0], "broadcast", {0, 1, 3, 0, 3}), "");
  EXPECT_THAT(error_of_plan(logs[1], "broadcast", {0, 1, 2, 1, 2}), HasSubstr("on another team"));
}

/// The records keep only the beginning of a text.
TEST(MismatchDetector, PlansWithLongTextsAreCompared) {
  Logs logs(2);
  const std::string long_text(1000, 'x');
  EXPECT_EQ(error_of_plan(logs[0], long_text + "a", {0, 1, 2, 0, 2}), "");
  EXPECT_THAT(error_of_plan(logs[1], long_text + "b", {0, 1, 2, 1, 2}), HasSubstr("with other options"));
}

TEST(MismatchDetector, ACallThatCouldNotBeEnqueuedWasNone) {
  Logs logs(2);
  logs.add("all_reduce");
  const auto refuse = [] { throw InvalidArgument("in: not aligned"); };
  EXPECT_THROW(logs[1].note(0, 5, refuse), InvalidArgument);
  EXPECT_EQ(logs[1].apart(), "");
  // The second attempt is the same call as the other PE's first.
  for (const Size count : {5, 7})
    for (const int pe : {1, 0}) EXPECT_EQ(error_of(logs[pe], 0, count), "");
}

TEST(MismatchDetector, AnOrderOfCallsIsComparedAsItSays) {
  Logs logs(3);
  const auto difference = [](const RecordedCall& own, const RecordedCall& its, int pe) {
    return own.places[1] == its.places[1] ? "" : "out differs from PE " + std::to_string(pe) + "'s";
  };
  for (int pe = 0; pe < 3; ++pe) logs[pe].add_order("calls", {0, 1, 3, pe, 3}, difference);
  const auto note = [&](int pe, const RecordedCall& call) {
    try {
      logs[pe].note(0, call);
    } catch (const InvalidArgument& error) {
      return std::string(error.what());
    }
    return std::string();
  };
  for (int pe = 0; pe < 3; ++pe)
    EXPECT_EQ(note(pe, {static_cast<std::uint32_t>(pe), pe, {static_cast<std::uint64_t>(pe), 9}}), "");
  EXPECT_EQ(note(0, {1, 5, {3, 9}}), "");
  EXPECT_EQ(note(2, {1, 5, {3, 8}}), "PE 2: call 2 of calls: out differs from PE 0's");
  ASSERT_EQ(logs.reported.size(), 1U);
  logs[2].take_back(0);
  EXPECT_EQ(note(2, {1, 5, {3, 9}}), "");
}

TEST(MismatchDetector, TeamsAreComparedWithinThemselves) {
  Logs logs(4);
  for (int pe = 0; pe < 4; ++pe) logs[pe].add("all_to_all", {pe / 2 * 2, 1, 2, pe % 2, 2});
  for (int pe = 0; pe < 4; ++pe) EXPECT_EQ(error_of(logs[pe], 0, pe < 2 ? 10 : 20), "");
  EXPECT_EQ(error_of(logs[2], 0, 30), "");
  EXPECT_NE(error_of(logs[3], 0, 31), "");
}

TEST(MismatchDetector, SaysWhoHasMadeFewerCalls) {
  Logs logs(3);
  logs.add("reduce");
  for (int pe = 0; pe < 3; ++pe)
    for (int call = 0; call < 5 - (pe == 1 ? 2 : 0); ++call) logs[pe].note(0, 1);
  EXPECT_EQ(logs[2].apart(), "; so far PE 1 has called reduce 3 times, PE 0 5 times");
}

TEST(MismatchDetector, ThreadsSeeEachOther) {
  // Both note call after call at the same time; in the last one they differ.
  constexpr Size calls = 20000;
  Logs logs(2);
  logs.add("exchange");
  std::array<bool, 2> refused{};
  std::vector<std::thread> threads;
  threads.reserve(2);
  for (int pe = 0; pe < 2; ++pe)
    threads.emplace_back([&, pe] {
      for (Size call = 0; call < calls; ++call) {
        // Not so far apart that calls are forgotten.
        const PlanCalls& other = *logs.records.of(1 - pe, 0);
        while (other.made.load() + PlanCalls::kRemembered / 2 < static_cast<std::uint64_t>(call))
          std::this_thread::yield();
        const bool is_last = call == calls - 1;
        try {
          logs[pe].note(0, is_last ? pe : call);
        } catch (const InvalidArgument&) {
          EXPECT_TRUE(is_last);
          refused[static_cast<std::size_t>(pe)] = true;
        }
      }
    });
  for (std::thread& thread : threads) thread.join();
  EXPECT_TRUE(refused[0] || refused[1]);
}

}  // namespace
}  // namespace tandem
