// Several PEs, of which some are slow, not reached or cut off, or whose world is over.
#include <gmock/gmock.h>

#include "wire/requests.h"

namespace tandem::wire {
namespace {

using testing::await;
using testing::CountedAccess;
using testing::disorder;
using testing::get_of;
using ::testing::HasSubstr;
using testing::Idle;
using testing::kLastWord;
using testing::Pes;
using testing::put;
using testing::with_word;
using testing::Wrapped;

/// Each of five PEs asks ten times. Each gets its next answer once all others have had one more.
TEST(SeveralPes, AnswerPesInTurns) {
  constexpr std::uint64_t kGets = 10;
  testing::AskedOne::State state;
  Pes pes(6, testing::asked(state));
  std::array<std::uint64_t, 6> got{};
  for (int pe = 1; pe < 6; ++pe)
    for (std::uint64_t i = 1; i <= kGets; ++i) {
      Request get = get_of(&got[static_cast<std::size_t>(pe)], 8);
      get.pe = 0;
      pes.post(pe, get);
    }
  for (int pe = 1; pe < 6; ++pe) await([&] { return pes.proxy(pe).mailbox().is_sent(kGets); });
  state.is_deaf = false;
  for (int pe = 1; pe < 6; ++pe) await([&] { return pes.proxy(pe).mailbox().is_answered(kGets); });
  state.expect_turns(5, kGets);
}

/// A PE that is not reached holds up no put to another one, nor a get. Its own requests stay in their order.
TEST(SeveralPes, PassAPeThatIsNotReached) {
  std::atomic<int> without{1};
  auto access = std::make_shared<CountedAccess>();
  Pes pes(3, {.wrap = testing::pe_0_without(without), .access = [&](int pe) -> std::shared_ptr<Access> {
                return pe == 0 ? access : std::make_shared<HostAccess>();
              }});
  constexpr std::uint64_t kPuts = 200;
  std::vector<std::byte> source(10'000, std::byte{3});
  std::uint64_t last = 0;
  for (std::uint64_t i = 1; i <= kPuts; ++i)
    last = pes.post(0, with_word(put(1, source.data(), 0, static_cast<Size>(source.size())), i));
  const std::uint64_t passing = pes.post(0, with_word(put(2, source.data(), 0, 8), 7));
  await([&] { return pes.word(2, kLastWord) == 7; });
  std::uint64_t got = 0;
  Request get = get_of(&got, 8);
  get.pe = 2;
  get.offset = kLastWord;
  pes.post(0, get);
  await([&] { return access->writes == 1; });
  const std::uint64_t flush = pes.post(0, {.kind = Request::Kind::kFlush});
  EXPECT_EQ(pes.word(1, kLastWord), 0U);
  for (const std::uint64_t one : {last, passing}) EXPECT_FALSE(pes.proxy(0).mailbox().is_sent(one));
  EXPECT_FALSE(pes.proxy(0).mailbox().is_answered(flush));
  without = -1;
  await([&] { return pes.proxy(0).mailbox().is_answered(flush); });
  EXPECT_EQ(got, 7U);
  EXPECT_EQ(pes.word(1, kLastWord), kPuts);
  EXPECT_TRUE(pes.proxy(0).mailbox().is_sent(passing));
  EXPECT_TRUE(pes.proxy(0).mailbox().is_quiet());
  EXPECT_EQ(pes.error(), "");
}

/// A flush may order later requests to other PEs behind it, though nobody waits for its answers.
TEST(SeveralPes, AwaitAFlushBeforeLaterRequestsToOthers) {
  std::atomic<int> without{1};
  Pes pes(3, {.wrap = testing::pe_0_without(without)});
  std::uint64_t value = 5;
  pes.post(0, with_word(put(1, &value, 0, 8), 5));
  pes.post(0, with_word(put(2, &value, 0, 8), 1));
  await([&] { return pes.word(2, kLastWord) == 1; });
  pes.post(0, {.kind = Request::Kind::kFlush});  // asks the PEs, so the next one does not
  const std::uint64_t flush = pes.post(0, {.kind = Request::Kind::kFlush, .precedes_later = true});
  pes.post(0, with_word(put(2, &value, 0, 8), 2));
  // Requests that may go have gone when PE 0 gives the second answer.
  for (int i = 0; i < 2; ++i) {
    std::uint64_t got = 0;
    Request get = get_of(&got, 8);
    get.pe = 0;
    const std::uint64_t asked = pes.post(2, get);
    await([&] { return pes.proxy(2).mailbox().is_answered(asked); });
  }
  EXPECT_EQ(pes.word(2, kLastWord), 1U);
  without = -1;
  await([&] { return pes.word(2, kLastWord) == 2; });
  EXPECT_EQ(pes.word(1, kLastWord), 5U);
  await([&] { return pes.proxy(0).mailbox().is_answered(flush); });
  EXPECT_EQ(pes.error(), "");
}

/// Requests to one PE keep their order, so it is asked for nothing until somebody waits.
TEST(SeveralPes, OrderNothingWithOneOther) {
  Pes pes(2);
  std::uint64_t value = 5;
  pes.post(0, with_word(put(1, &value, 0, 8), 5));
  const std::uint64_t flush = pes.post(0, {.kind = Request::Kind::kFlush, .precedes_later = true});
  await([&] { return pes.proxy(0).mailbox().is_answered(flush); });
  EXPECT_FALSE(pes.proxy(0).mailbox().is_quiet());
  pes.settle(0);
  EXPECT_TRUE(pes.proxy(0).mailbox().is_quiet());
  EXPECT_EQ(pes.word(1, kLastWord), 5U);
  EXPECT_EQ(pes.error(), "");
}

/// Flushes between puts to several PEs, of which each is complete in its turn.
TEST(SeveralPes, FlushPutsToSeveralPesInTheirOrder) {
  for (std::uint64_t seed = 0; seed < 100; ++seed) {
    Pes pes(4, {.disorder = disorder(seed)});
    std::vector<std::uint64_t> flushes, source(31);
    for (std::uint64_t i = 1; i <= 30; ++i) {
      source[i] = i;
      pes.post(0, put(1 + static_cast<int>(i % 3), &source[i], static_cast<Size>(8 * i), 8));
      flushes.push_back(pes.post(0, {.kind = Request::Kind::kFlush}));
    }
    for (std::uint64_t i = 1; i <= 30; ++i) {
      await([&] { return pes.proxy(0).mailbox().is_answered(flushes[i - 1]); });
      ASSERT_EQ(pes.word(1 + static_cast<int>(i % 3), static_cast<Size>(8 * i)), i) << "seed " << seed;
    }
    EXPECT_TRUE(pes.proxy(0).mailbox().is_quiet());
  }
}

/// Loses one message, against the contract of an engine.
class Losing final : public Wrapped {
 public:
  using Wrapped::Wrapped;

  bool send(int pe, View header, View data, const OnSent& sent) override {
    return sent_++ == 0 || Wrapped::send(pe, header, data, sent);
  }

 private:
  int sent_ = 0;
};

/// 64 MB of later messages are kept, whatever their number.
TEST(SeveralPes, KeepNoMoreBytesThanALostMessageIsWorth) {
  std::vector<std::byte> source(60'000);  // read until the proxies end
  Pes pes(2, {.wrap = [](int pe, std::unique_ptr<Endpoint> inner) -> std::unique_ptr<Endpoint> {
            if (pe == 0) return std::make_unique<Losing>(std::move(inner));
            return inner;
          }});
  for (int i = 0; i < 1200 && pes.error().empty(); ++i) {
    const std::uint64_t number = pes.post(0, put(1, source.data(), 0, static_cast<Size>(source.size())));
    await([&] { return pes.proxy(0).mailbox().is_sent(number) || !pes.error().empty(); });
  }
  await([&] { return !pes.error().empty(); });
  EXPECT_THAT(pes.error(),
              HasSubstr("PE 1: message 1 of PE 0 has not arrived, 1115 later ones of 67114080 bytes have"));
}

/// An endpoint whose connection to PE 1 breaks.
class Breaking final : public Wrapped {
 public:
  using Wrapped::Wrapped;

  std::vector<Break> breaks() override {
    if (std::exchange(has_broken_, true)) return {};
    return {{1, "it was cut"}};
  }

 private:
  bool has_broken_ = false;
};

std::unique_ptr<Endpoint> breaking(int pe, std::unique_ptr<Endpoint> inner) {
  if (pe == 0) return std::make_unique<Breaking>(std::move(inner));
  return inner;
}

/// No message is sent. A world that is over needs no connection.
TEST(SeveralPes, ReportAConnectionThatHasBeenBrokenForATime) {
  Pes pes(2, {.wrap = breaking, .silence_s = 0.05});
  await([&] { return !pes.error().empty(); });
  EXPECT_EQ(pes.error(), "PE 0: the connection to PE 1 broke 0.05 s ago: it was cut (TANDEM_HEARTBEAT_S)");
  Pes patient(2, {.wrap = breaking, .silence_s = 600});
  Idle::State state;
  Pes over(2, {.wrap = [&](int pe, std::unique_ptr<Endpoint> inner) -> std::unique_ptr<Endpoint> {
                 return std::make_unique<Idle>(breaking(pe, std::move(inner)), state);
               },
               .silence_s = 0,
               .is_over = [](int) { return true; }});
  await([&] { return state.polls > 20; });
  EXPECT_EQ(patient.error(), "");
  EXPECT_EQ(over.error(), "");
}

/// Memory whose proxy stops in the middle of a write.
class StoppingAccess final : public HostAccess {
 public:
  bool write(std::byte* to, View data) override {
    is_writing = true;
    await([&] { return may_go_on.load(); });
    return HostAccess::write(to, data);
  }
  std::atomic<bool> is_writing{false}, may_go_on{false};
};

/// Who learns that the world is over may free the destinations of gets.
TEST(SeveralPes, WriteNothingOnceGetsAreOver) {
  auto access = std::make_shared<StoppingAccess>();
  Pes pes(2, {.access = [&](int pe) -> std::shared_ptr<Access> {
            return pe == 0 ? access : std::make_shared<HostAccess>();
          }});
  std::array<std::uint64_t, 2> got{5, 5};
  pes.post(0, get_of(&got[0], 8));
  await([&] { return access->is_writing.load(); });
  std::atomic<bool> are_over{false};
  std::thread ending([&] {
    pes.proxy(0).end_gets();
    are_over = true;
  });
  std::this_thread::sleep_for(std::chrono::milliseconds(20));
  EXPECT_FALSE(are_over);
  access->may_go_on = true;
  ending.join();
  EXPECT_EQ(got[0], 0U);
  const std::uint64_t late = pes.post(0, get_of(&got[1], 8));
  const std::uint64_t word = pes.post(0, with_word(put(1, nullptr, 0, 0), 1));
  await([&] { return pes.proxy(0).mailbox().is_sent(word) && pes.word(1, kLastWord) == 1; });
  pes.post(1, with_word({.pe = 0}, 1));  // behind the answer
  await([&] { return pes.word(0, kLastWord) == 1; });
  EXPECT_EQ(got[1], 5U);
  EXPECT_FALSE(pes.proxy(0).mailbox().is_answered(late));
}

}  // namespace
}  // namespace tandem::wire
