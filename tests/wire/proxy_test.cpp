// Requests between proxies, over messages that are late, out of order and repeated.
#include <gmock/gmock.h>

#include <algorithm>

#include "wire/requests.h"

namespace tandem::wire {
namespace {

using testing::await;
using testing::CountedAccess;
using testing::disorder;
using ::testing::HasSubstr;
using testing::held;
using testing::Idle;
using testing::kLastWord;
using testing::Pes;
using testing::PesSetup;
using testing::put;
using testing::with_word;
using testing::Wrapped;

/// Puts of growing values to one place. The word gets each of them, and the place has its value then.
TEST(Proxies, PlaceDataBeforeTheWordInTheSendersOrder) {
  constexpr std::uint64_t kPuts = 12;
  for (std::uint64_t seed = 0; seed < 1000; ++seed) {
    std::vector<std::uint64_t> source(kPuts + 1);
    std::atomic<int> wrong{0};
    std::uint64_t last = 0;  // of the proxy's thread
    Pes* all = nullptr;
    const auto check = [&](int pe) {
      if (pe != 1 || all == nullptr) return;
      const std::uint64_t word = all->word(1, kLastWord);
      if (all->word(1, 0) != word || word < last || word > last + 1) ++wrong;
      last = word;
    };
    std::atomic<bool> is_made{false};
    Pes pes(2, {.disorder = disorder(seed), .on_change = [&](int pe) {
                  if (is_made) check(pe);
                }});
    all = &pes;
    is_made = true;
    for (std::uint64_t i = 1; i <= kPuts; ++i) {
      source[i] = i;
      const Request request = with_word(put(1, &source[i], 0, 8), i);
      pes.post(0, (seed + i) % 2 == 0 ? request : held(request));
    }
    await([&] { return pes.word(1, kLastWord) == kPuts; });
    pes.settle(0);
    ASSERT_EQ(wrong, 0) << "seed " << seed;
    ASSERT_EQ(pes.error(), "");
  }
}

TEST(Proxies, AddEachSignalOnce) {
  for (std::uint64_t seed = 0; seed < 100; ++seed) {
    Pes pes(3, {.disorder = disorder(seed)});
    for (int i = 0; i < 20; ++i)
      for (const int from : {0, 2}) pes.post(from, with_word(put(1, nullptr, 0, 0), 1, SignalOp::kAdd));
    for (const int from : {0, 2}) pes.settle(from);
    ASSERT_EQ(pes.word(1, kLastWord), 40U) << "seed " << seed;
  }
}

/// Data of several messages: the word changes after the last.
TEST(Proxies, SendDataInPieces) {
  for (const Seal seal : {Seal::kHeaders, Seal::kAll})
    for (const Size bytes : {Size{1}, (Size{64} << 10) - 64, (Size{64} << 10) - 63, Size{200'003}}) {
      Pes pes(2, {.disorder = disorder(3), .seal = seal});
      std::vector<std::byte> source(static_cast<std::size_t>(bytes));
      for (std::size_t i = 0; i < source.size(); ++i) source[i] = static_cast<std::byte>(i * 7 + 1);
      pes.post(0, with_word(put(1, source.data(), 16, bytes), 1));
      await([&] { return pes.word(1, kLastWord) == 1; });
      EXPECT_EQ(std::memcmp(pes.memory(1) + 16, source.data(), source.size()), 0);
      EXPECT_EQ(pes.memory(1)[15], std::byte{});
      EXPECT_EQ(pes.memory(1)[16 + bytes], std::byte{});
    }
}

/// The source may change as soon as the request is posted.
TEST(Proxies, SendTheDataThatARequestHolds) {
  for (const Seal seal : {Seal::kHeaders, Seal::kAll})
    for (const bool has_word : {false, true})
      for (Size bytes = 1; bytes <= kMostHeld; ++bytes) {
        Pes pes(2, {.disorder = disorder(static_cast<std::uint64_t>(bytes)), .seal = seal});
        std::vector<std::byte> source(static_cast<std::size_t>(bytes));
        for (std::size_t i = 0; i < source.size(); ++i) source[i] = static_cast<std::byte>(i + 1);
        const std::vector<std::byte> before = source;
        const Request request = held(put(1, source.data(), 32, bytes));
        std::fill(source.begin(), source.end(), std::byte{77});
        pes.post(0, has_word ? with_word(request, 1) : request);
        pes.settle(0);
        EXPECT_EQ(pes.word(1, kLastWord), has_word ? 1U : 0U);
        EXPECT_EQ(std::memcmp(pes.memory(1) + 32, before.data(), before.size()), 0) << bytes << " bytes";
        EXPECT_EQ(pes.memory(1)[31], std::byte{});
        EXPECT_EQ(pes.memory(1)[32 + bytes], std::byte{});
      }
}

TEST(Proxies, TellWhenASourceMayChange) {
  Pes pes(2);
  std::uint64_t source = 1;
  const std::uint64_t number = pes.post(0, with_word(put(1, &source, 0, 8), 1));
  await([&] { return pes.proxy(0).mailbox().is_sent(number); });
  source = 2;
  await([&] { return pes.word(1, kLastWord) == 1; });
  EXPECT_EQ(pes.word(1, 0), 1U);
}

/// Data in symmetric memory is sent from there, perhaps polls later. Its source may change once it is sent.
TEST(Proxies, ReadDataWhereItIsUntilItIsSent) {
  constexpr Size kEach = 10'000;
  for (std::uint64_t seed = 0; seed < 5; ++seed) {
    Pes pes(2, {.disorder = {.seed = seed, .delayed_polls = 2000}});
    const auto place_of = [](int value) { return 1024 + value * kEach; };
    for (int value = 1; value <= 20; ++value) {
      std::memset(pes.memory(0), value, kEach);
      const std::uint64_t number = pes.post(0, with_word(put(1, pes.memory(0), place_of(value), kEach), 1));
      await([&] { return pes.proxy(0).mailbox().is_sent(number); });
    }
    pes.settle(0);
    for (int value = 1; value <= 20; ++value) {
      const View got(pes.memory(1) + place_of(value), kEach);
      ASSERT_TRUE(std::all_of(got.begin(), got.end(), [&](std::byte one) { return one == std::byte(value); }))
          << "seed " << seed << ", value " << value;
    }
  }
}

/// Keeps a message whose data has to stay until it may depart.
class Late final : public Wrapped {
 public:
  struct State {
    std::atomic<bool> may_depart{false};
    std::atomic<int> polls{0};  ///< since the message is kept
  };
  Late(std::unique_ptr<Endpoint> inner, State& state) : Wrapped(std::move(inner)), state_(state) {}

  bool send(int pe, View header, View data, const OnSent& sent) override {
    if (!sent) return Wrapped::send(pe, header, data, sent);
    depart_ = [this, pe, data, sent, copy = Bytes(header.begin(), header.end())] {
      Wrapped::send(pe, copy, data, nullptr);
      sent();
    };
    return true;
  }
  bool poll(const Take& take) override {
    if (depart_) ++state_.polls;
    if (depart_ && state_.may_depart) std::exchange(depart_, nullptr)();
    return Wrapped::poll(take);
  }
  void wait(int) override { Wrapped::wait(1); }

 private:
  State& state_;
  std::function<void()> depart_;
};

TEST(Proxies, NoteDataAsSentOnceItIs) {
  Late::State state;
  Pes pes(2, {.wrap = [&](int pe, std::unique_ptr<Endpoint> inner) -> std::unique_ptr<Endpoint> {
            if (pe == 0) return std::make_unique<Late>(std::move(inner), state);
            return inner;
          }});
  std::memset(pes.memory(0), 5, 10'000);
  const std::uint64_t number = pes.post(0, with_word(put(1, pes.memory(0), 1024, 10'000), 1));
  await([&] { return state.polls > 2; });
  EXPECT_FALSE(pes.proxy(0).mailbox().is_sent(number));
  state.may_depart = true;
  await([&] { return pes.proxy(0).mailbox().is_sent(number); });
  std::memset(pes.memory(0), 6, 10'000);
  pes.settle(0);
  EXPECT_EQ(pes.memory(1)[1024], std::byte{5});
  EXPECT_EQ(pes.memory(1)[1024 + 9'999], std::byte{5});
}

/// Notes whether data has to stay, and may keep it for ever.
class Keeping final : public Wrapped {
 public:
  struct State {
    std::atomic<int> staying{0}, copied{0};
    bool is_for_ever = false;
  };
  Keeping(std::unique_ptr<Endpoint> inner, State& state) : Wrapped(std::move(inner)), state_(state) {}

  bool send(int pe, View header, View data, const OnSent& sent) override {
    ++(sent ? state_.staying : state_.copied);
    return Wrapped::send(pe, header, data, sent && state_.is_for_ever ? OnSent([] {}) : sent);
  }

 private:
  State& state_;
};

PesSetup with(Keeping::State& state, Seal seal = Seal::kHeaders) {
  return {.seal = seal, .wrap = [&state](int pe, std::unique_ptr<Endpoint> inner) -> std::unique_ptr<Endpoint> {
            if (pe != 0) return inner;
            return std::make_unique<Keeping>(std::move(inner), state);
          }};
}

TEST(Proxies, CopyDataThatIsShortOrForeignOrEncrypted) {
  const Bytes foreign(10'000);
  const auto staying = [&](Size bytes, bool is_foreign, Seal seal) {
    Keeping::State state;
    Pes pes(2, with(state, seal));
    const void* const source = is_foreign ? foreign.data() : pes.memory(0);
    pes.post(0, with_word(put(1, const_cast<void*>(source), 1024, bytes), 1));
    await([&] { return pes.word(1, kLastWord) == 1; });
    return state.staying.load();
  };
  EXPECT_EQ(staying(10'000, false, Seal::kHeaders), 1);
  EXPECT_EQ(staying(100, false, Seal::kHeaders), 0);
  EXPECT_EQ(staying(10'000, true, Seal::kHeaders), 0);
  EXPECT_EQ(staying(10'000, false, Seal::kAll), 0);
}

/// A message that is under way holds up no wait once the world is over.
TEST(Proxies, NoteAllAsSentWhereTheWorldIsOver) {
  Keeping::State state;
  state.is_for_ever = true;
  Pes pes(2, with(state));
  const std::uint64_t number = pes.post(0, with_word(put(1, pes.memory(0), 1024, 10'000), 1));
  await([&] { return pes.word(1, kLastWord) == 1; });
  EXPECT_FALSE(pes.proxy(0).mailbox().is_sent(number));
  pes.post(0, put(1, pes.memory(0), Pes::kBytes, 8));
  await([&] { return pes.proxy(0).mailbox().is_sent(number); });
  EXPECT_THAT(pes.error(), HasSubstr("PE 0 reaches for bytes"));
}

/// Nobody waits for requests that are only posted, so nobody is woken for them. A wait is woken, and misses no ring.
TEST(Proxies, RingForThoseWhoWaitAlone) {
  std::atomic<std::uint32_t> rung{0};
  Pes pes(2, {.on_change = [&](int pe) {
            if (pe == 0) ++rung;
          }});
  std::uint64_t source = 1;
  for (std::uint64_t i = 1; i <= 100; ++i) pes.post(0, with_word(put(1, &source, 0, 8), i));
  await([&] { return pes.word(1, kLastWord) == 100; });
  EXPECT_EQ(rung, 0U);
  for (int i = 0; i < 1000; ++i) {
    const std::uint64_t flush = pes.post(0, {.kind = Request::Kind::kFlush});
    for (std::uint32_t before = rung; !pes.proxy(0).mailbox().is_answered(flush); before = rung)
      await([&] { return rung != before; });
  }
}

/// Only data that no word follows may be polled, and is written word by word.
TEST(Proxies, WriteDataBeforeAWordAtOnce) {
  auto access = std::make_shared<CountedAccess>();
  Pes pes(2, {.access = [&](int) -> std::shared_ptr<Access> { return access; }});
  std::vector<std::byte> source(200'000, std::byte{3});
  pes.post(0, with_word(put(1, source.data(), 0, 200'000), 1));
  pes.settle(0);
  EXPECT_EQ(access->packet_writes, 0);
  EXPECT_GT(access->writes, 1);
  pes.post(0, put(1, source.data(), 0, 200'000));
  pes.settle(0);
  EXPECT_GT(access->packet_writes, 1);
}

/// A get sees the puts before it, and is complete when it is answered.
TEST(Proxies, FetchData) {
  for (std::uint64_t seed = 0; seed < 50; ++seed) {
    Pes pes(2, {.disorder = disorder(seed)});
    std::vector<std::byte> source(100'000, std::byte{5});
    std::vector<std::byte> copy(source.size());
    pes.post(0, put(1, source.data(), 8, static_cast<Size>(source.size())));
    Request get = put(1, copy.data(), 8, static_cast<Size>(copy.size()));
    get.kind = Request::Kind::kGet;
    const std::uint64_t number = pes.post(0, get);
    await([&] { return pes.proxy(0).mailbox().is_answered(number); });
    EXPECT_EQ(copy, source) << "seed " << seed;
  }
}

/// Puts are complete once the flush is answered.
TEST(Proxies, FlushPuts) {
  for (std::uint64_t seed = 0; seed < 200; ++seed) {
    Pes pes(3, {.disorder = disorder(seed)});
    std::uint64_t source = seed + 1;
    for (const int to : {1, 2}) pes.post(0, put(to, &source, 8, 8));
    pes.proxy(0).settle();
    for (const int to : {1, 2}) ASSERT_EQ(pes.word(to, 8), seed + 1) << "seed " << seed;
    EXPECT_TRUE(pes.proxy(0).mailbox().is_quiet());
  }
}

/// Counts what PE 0 does, and leaves PE 1 deaf for a time.
class Held final : public Wrapped {
 public:
  struct State {
    std::atomic<int> sent{0}, waits_after_both{0};
    std::atomic<bool> is_deaf{true};
  };
  Held(int pe, std::unique_ptr<Endpoint> inner, State& state) : Wrapped(std::move(inner)), pe_(pe), state_(state) {}

  bool send(int pe, View header, View data, const OnSent& sent) override {
    const bool done = Wrapped::send(pe, header, data, sent);
    if (pe_ == 0 && done) ++state_.sent;
    return done;
  }
  bool poll(const Take& take) override { return !(pe_ == 1 && state_.is_deaf) && Wrapped::poll(take); }
  void wait(int ms) override {
    if (pe_ == 0 && state_.sent == 2) ++state_.waits_after_both;
    Wrapped::wait(std::min(ms, 1));
  }

 private:
  int pe_;
  State& state_;
};

TEST(Proxies, AnswerFlushesOnceTheOtherSideHasAnswered) {
  Held::State state;
  Pes pes(2, {.wrap = [&](int pe, std::unique_ptr<Endpoint> inner) {
            return std::make_unique<Held>(pe, std::move(inner), state);
          }});
  std::uint64_t source = 1;
  pes.post(0, put(1, &source, 8, 8));
  const std::uint64_t flush = pes.post(0, {.kind = Request::Kind::kFlush});
  await([&] { return state.waits_after_both > 1; });  // the put and the flush were sent, and no message came
  EXPECT_FALSE(pes.proxy(0).mailbox().is_answered(flush));
  state.is_deaf = false;
  await([&] { return pes.proxy(0).mailbox().is_answered(flush); });
  EXPECT_EQ(pes.word(1, 8), 1U);
}

/// Returns how often a proxy sleeps while it looks for work some hundred times after a put.
int sleeps_after_work(std::chrono::microseconds search) {
  Idle::State state;
  Pes pes(2, {.wrap = [&](int pe, std::unique_ptr<Endpoint> inner) -> std::unique_ptr<Endpoint> {
                if (pe == 0) return std::make_unique<Idle>(std::move(inner), state);
                return inner;
              },
              .search = search});
  std::uint64_t source = 1;
  pes.post(0, put(1, &source, 8, 8));
  pes.settle(0);
  const int polls = state.polls, waits = state.waits;
  await([&] { return state.polls >= polls + 300; });
  return state.waits - waits;
}

TEST(Proxies, LookForWorkForATimeBeforeTheySleep) {
  EXPECT_EQ(sleeps_after_work(std::chrono::hours(1)), 0);
  EXPECT_GT(sleeps_after_work(std::chrono::microseconds(0)), 100);
}

TEST(Proxies, RefuseWhatReachesBeyondTheirMemory) {
  const auto error_of = [](Request request) {
    Pes pes(2);
    std::vector<std::byte> source(4096);
    request.local = source.data();
    pes.post(0, request);
    pes.settle(0);
    for (Size i = 0; i < Pes::kBytes; ++i)
      if (pes.memory(1)[i] != std::byte{}) return std::string("memory was written");
    return pes.error();
  };
  constexpr Size kEnd = Pes::kBytes;
  EXPECT_THAT(error_of(put(1, nullptr, kEnd - 8, 9)),
              HasSubstr("PE 1: PE 0 reaches for bytes 524280 to 524289 of PE 1"));
  EXPECT_THAT(error_of(put(1, nullptr, -8, 8)), HasSubstr("PE 0 reaches for bytes -8"));
  Request far_word = with_word(put(1, nullptr, 0, 0), 1);
  far_word.word = kEnd;
  EXPECT_THAT(error_of(far_word), HasSubstr("PE 0 reaches for bytes 524288 to 524296"));
  Request odd_word = with_word(put(1, nullptr, 0, 0), 1);
  odd_word.word = 12;
  EXPECT_THAT(error_of(odd_word), HasSubstr("PE 0 signals offset 12 of PE 1, allowed are multiples of 8"));
  Request get = put(1, nullptr, kEnd, 1);
  get.kind = Request::Kind::kGet;
  EXPECT_THAT(error_of(get), HasSubstr("PE 0 reaches for bytes 524288 to 524289"));
}

/// PE 1, which answers a get as if it were a flush: it gives the number of bytes, and none of them.
class Empty final : public Wrapped {
 public:
  using Wrapped::Wrapped;

  bool send(int pe, View header, View data, const OnSent& sent) override {
    Bytes message(header.begin(), header.end());
    message.insert(message.end(), data.begin(), data.end());
    Bytes plain;
    auto fields = Keys(testing::key_of(7), Seal::kHeaders, 2, 0).open(message, plain);
    if (!fields || fields->kind != Kind::kGot) return Wrapped::send(pe, header, data, sent);
    fields->kind = Kind::kFlushed;
    return Wrapped::send(pe, Keys(testing::key_of(7), Seal::kHeaders, 2, 1).seal(*fields, {}), {}, nullptr);
  }
};

TEST(Proxies, RefuseAnswersOfAnotherKind) {
  Pes pes(2, {.wrap = [](int pe, std::unique_ptr<Endpoint> inner) -> std::unique_ptr<Endpoint> {
            if (pe == 1) return std::make_unique<Empty>(std::move(inner));
            return inner;
          }});
  std::uint64_t to = 0;
  Request get = put(1, &to, 0, 8);
  get.kind = Request::Kind::kGet;
  const std::uint64_t number = pes.post(0, get);
  await([&] { return !pes.error().empty() || pes.proxy(0).mailbox().is_answered(number); });
  EXPECT_THAT(pes.error(), HasSubstr("PE 1 answers what PE 0 has not asked"));
}

/// An endpoint that also passes on what a stranger sends: each message changed, cut and replaced by noise.
class Noisy final : public Wrapped {
 public:
  using Wrapped::Wrapped;

  bool send(int pe, View header, View data, const OnSent& sent) override {
    Bytes changed(header.begin(), header.end());
    changed[static_cast<std::size_t>(sent_ % kHeaderBytes)] ^= std::byte{1};
    inner_->send(pe, changed, data, nullptr);
    inner_->send(pe, header.first(static_cast<std::size_t>(sent_ % kHeaderBytes)), {}, nullptr);
    inner_->send(pe, Bytes(static_cast<std::size_t>(sent_ % 200), static_cast<std::byte>(sent_)), {}, nullptr);
    ++sent_;
    return inner_->send(pe, header, data, sent);
  }

 private:
  Size sent_ = 0;
};

TEST(Proxies, DropWhatIsNotAuthentic) {
  Pes pes(2, {.disorder = disorder(1),
              .wrap = [](int, std::unique_ptr<Endpoint> inner) { return std::make_unique<Noisy>(std::move(inner)); }});
  for (int i = 0; i < 200; ++i) pes.post(0, with_word(put(1, nullptr, 0, 0), 1, SignalOp::kAdd));
  pes.settle(0);
  EXPECT_EQ(pes.word(1, kLastWord), 200U);
  EXPECT_EQ(pes.error(), "");
}

TEST(Mailbox, TakesNoMoreRequestsThanItHolds) {
  Mailbox mailbox({nullptr, 64, 2, 0, 1}, [] {});
  for (std::uint64_t i = 1; i <= 4096; ++i) ASSERT_EQ(mailbox.try_post({}), i);
  EXPECT_EQ(mailbox.try_post({}), 0U);
  Request request;
  EXPECT_TRUE(mailbox.has_request());
  EXPECT_EQ(mailbox.take(request), 1U);
  EXPECT_EQ(mailbox.try_post({}), 4097U);
}

TEST(Mailbox, FindsThePesOfOtherNodes) {
  std::vector<std::byte> memory(64 * 4);
  const Mailbox mailbox({memory.data(), 64, 4, 1, 2}, [] {});
  EXPECT_FALSE(mailbox.far_spot(memory.data()));
  EXPECT_FALSE(mailbox.far_spot(memory.data() + 127));
  EXPECT_FALSE(mailbox.far_spot(memory.data() - 1));
  EXPECT_FALSE(mailbox.far_spot(memory.data() + 256));
  const auto spot = mailbox.far_spot(memory.data() + 128 + 3);
  ASSERT_TRUE(spot);
  EXPECT_EQ(spot->pe, 2);
  EXPECT_EQ(spot->offset, 3);
}

}  // namespace
}  // namespace tandem::wire
