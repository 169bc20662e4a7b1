// Requests that kernels post in memory, and a proxy that reaches its PE's memory by copies which take their time.
#include <gtest/gtest.h>

#include <deque>
#include <list>
#include <map>
#include <mutex>
#include <numeric>
#include <stdexcept>

#include "wire/pes.h"

namespace tandem::wire::testing {
namespace {

constexpr Size kData = 4096;
constexpr Size kWord = 64;

/// Memory that is read and written later, in order, as a GPU's streams of copies do. Some looks for requests of kernels
/// let one write go ahead, unless hold() was called. A reading takes its data at the third question whether it is read.
class LateAccess final : public Access {
 public:
  static constexpr std::size_t kReadings = 3;

  /// From now on, only finish(), are_written() and what calls them let writes go ahead.
  void hold() { held_ = true; }
  /// From now on, data is written from where the message has it.
  void leave_in_messages() { leaves_ = true; }
  std::size_t most_readings() const override { return kReadings; }
  Reading read(const std::byte* from, Size bytes) override {
    if (readings_.size() >= kReadings) throw std::logic_error("more readings than there may be");
    LateReading& late = readings_[++read_];
    late = {from, Bytes(static_cast<std::size_t>(bytes)), 0};
    return {late.data, read_};
  }
  bool is_read(const Reading& reading) override {
    LateReading& late = readings_.at(reading.number);
    if (++late.questions == 3) std::memcpy(late.data.data(), late.from, late.data.size());
    return late.questions >= 3;
  }
  void release(const Reading& reading) override { readings_.erase(reading.number); }
  std::uint64_t mark_writes() override { return added_; }
  bool are_written(std::uint64_t mark) override {
    if (applied_ < mark) apply_first();
    return applied_ >= mark;
  }
  bool write(std::byte* to, View data) override {
    if (leaves_)
      add({to, {}, nullptr, 0, data});
    else
      add({to, {data.begin(), data.end()}, nullptr, 0, {}});
    return leaves_;
  }
  Epoch value_of(const Signal& word) override {
    finish();
    return memory_.value_of(word);
  }
  void change(Signal& word, SignalOp op, Epoch value) override {
    add({nullptr, {}, &word, op == SignalOp::kSet ? value : value_of(word) + value, {}});
  }
  void finish() override {
    while (apply_first()) continue;
  }
  KernelRequests* kernel_requests() override {
    if (!held_ && ++looks_ % 64 == 0) apply_first();
    return &requests_;
  }

  /// Posts a request as a kernel does. Returns its number.
  std::uint64_t post(cuda::MailKind kind, int pe, Size bytes, void* local, bool has_word, Epoch value) {
    cuda::MailSlot request{};
    request.head = cuda::mail_head(kind, SignalOp::kSet, has_word, pe);
    request.local = reinterpret_cast<std::uint64_t>(local);
    request.offset = kData;
    request.bytes = static_cast<std::uint64_t>(bytes);
    request.value = value;
    return post(request);
  }
  /// Posts a put of two words to PE 1 that its request holds, with a signal.
  std::uint64_t post_held(Size offset, std::uint64_t first, std::uint64_t second, Epoch value, Size bytes = 16) {
    cuda::MailSlot request{};
    request.head = cuda::mail_head(cuda::MailKind::kPut, SignalOp::kSet, true, 1, cuda::MailData::kHeld);
    request.local = first;
    request.held = second;
    request.offset = static_cast<std::uint64_t>(offset);
    request.bytes = static_cast<std::uint64_t>(bytes);
    request.value = value;
    return post(request);
  }
  /// Posts a put to PE 1 whose data is beside its request, with a signal. The data is `first`, `first` + 1, ...
  std::uint64_t post_beside(Size offset, std::uint64_t first, Size words, Epoch value) {
    cuda::MailSlot request{};
    request.head = cuda::mail_head(cuda::MailKind::kPut, SignalOp::kSet, true, 1, cuda::MailData::kBeside);
    request.offset = static_cast<std::uint64_t>(offset);
    request.bytes = static_cast<std::uint64_t>(words) * sizeof first;
    request.value = value;
    std::vector<std::uint64_t> data(static_cast<std::size_t>(std::min(words, cuda::kMostBeside / 8)));
    std::iota(data.begin(), data.end(), first);
    return post(request, View(reinterpret_cast<const std::byte*>(data.data()), data.size() * sizeof first));
  }
  std::uint64_t sent() { return std::atomic_ref(progress_.sent).load(std::memory_order_acquire); }
  std::uint64_t answered() { return std::atomic_ref(progress_.answered).load(std::memory_order_acquire); }
  /// Returns how many readings have begun, for threads that know all requests to be answered.
  std::uint64_t readings() const { return read_; }

 private:
  std::uint64_t post(const cuda::MailSlot& request, View beside = {}) {
    const std::uint64_t number = ++posted_;
    await([&] { return answered() + (beside.empty() ? cuda::kMailSlots : cuda::kMailPlaces) >= number; });
    std::copy(beside.begin(), beside.end(), ring_->places[number % cuda::kMailPlaces]);
    cuda::MailSlot& slot = ring_->slots[number % cuda::kMailSlots];
    slot.head = request.head;
    slot.local = request.local;
    slot.offset = request.offset;
    slot.bytes = request.bytes;
    slot.word = kWord;
    slot.value = request.value;
    slot.held = request.held;
    std::atomic_ref(slot.number).store(number, std::memory_order_release);
    return number;
  }

  struct Write {
    std::byte* to;
    Bytes data;
    Signal* word;
    Epoch value;
    View left;  ///< data that the message has
  };

  struct LateReading {
    const std::byte* from = nullptr;
    Bytes data;
    int questions = 0;
  };

  void add(Write write) {
    const std::lock_guard lock(mutex_);
    ++added_;
    late_.push_back(std::move(write));
  }
  /// Returns false if there is none.
  bool apply_first() {
    const std::lock_guard lock(mutex_);
    if (late_.empty()) return false;
    const Write next = std::move(late_.front());
    late_.pop_front();
    ++applied_;
    if (next.word != nullptr)
      memory_.change(*next.word, SignalOp::kSet, next.value);
    else
      memory_.write(next.to, next.left.empty() ? View(next.data) : next.left);
    return true;
  }

  std::unique_ptr<cuda::MailRing> ring_ = std::make_unique<cuda::MailRing>();
  cuda::MailProgress progress_{};
  KernelRequests requests_{ring_.get(), &progress_};
  std::uint64_t posted_ = 0;
  HostAccess memory_;
  std::mutex mutex_;
  std::deque<Write> late_;
  std::uint64_t added_ = 0;    // writes
  std::uint64_t applied_ = 0;  // of them
  std::map<std::uint64_t, LateReading> readings_;
  std::atomic<std::uint64_t> read_ = 0;
  std::atomic<unsigned> looks_{0};
  std::atomic<bool> held_{false}, leaves_{false};
};

/// An endpoint whose messages lose their contents once they are not in use any more.
class Forgetful final : public Wrapped {
 public:
  using Wrapped::Wrapped;

  bool poll(const Take& take) override {
    return inner_->poll([&](View message) {
      Bytes own(message.begin(), message.end());
      if (take(own))
        in_use_.push_back(std::move(own));
      else
        forget(own);
      return false;
    });
  }
  void release(View message) override {
    for (Bytes& one : in_use_)
      if (one.data() == message.data()) forget(one);
  }

 private:
  static void forget(Bytes& message) { std::fill(message.begin(), message.end(), std::byte{0xEE}); }

  std::list<Bytes> in_use_;  // all that were, since what reads them too late must not find other messages
};

/// PEs, with the access of each.
class Gpus {
 public:
  explicit Gpus(const Disorder& disorder = {}) : Gpus(2, {.disorder = disorder}) {}
  Gpus(int pes, PesSetup setup) : access_(make(pes)), pes_(pes, with_access(std::move(setup))) {}

  Pes& pes() { return pes_; }
  LateAccess& access(int pe) { return *access_[static_cast<std::size_t>(pe)]; }
  std::uint64_t value(int pe, Size at) { return pes_.word(pe, kData + at * 8); }

 private:
  static std::vector<std::shared_ptr<LateAccess>> make(int pes) {
    std::vector<std::shared_ptr<LateAccess>> all;
    for (int pe = 0; pe < pes; ++pe) all.push_back(std::make_shared<LateAccess>());
    return all;
  }
  PesSetup with_access(PesSetup setup) {
    setup.access = [this](int pe) { return access_[static_cast<std::size_t>(pe)]; };
    return setup;
  }

  std::vector<std::shared_ptr<LateAccess>> access_;
  Pes pes_;
};

constexpr Size kWords = 9000;  // more than a message holds

TEST(KernelRequests, PlaceDataBeforeTheWord) {
  Gpus gpus({.seed = 3, .delayed_polls = 4, .repeated_per_mille = 100});
  std::vector<std::uint64_t> source(kWords);
  for (std::uint64_t round = 1; round <= 20; ++round) {
    for (std::size_t i = 0; i < source.size(); ++i) source[i] = round * 100000 + i;
    const auto number = gpus.access(0).post(cuda::MailKind::kPut, 1, kWords * 8, source.data(), true, round);
    await([&] { return gpus.pes().word(1, kWord) == round; });
    for (const Size i : {Size{0}, kWords / 2, kWords - 1})
      EXPECT_EQ(gpus.value(1, i), round * 100000 + static_cast<std::uint64_t>(i)) << round;
    await([&] { return gpus.access(0).sent() >= number; });
  }
  EXPECT_EQ(gpus.pes().error(), "");
}

/// Data is written from messages, which stay until it is.
TEST(KernelRequests, AreWrittenFromMessagesInUse) {
  Gpus gpus(2, {.wrap = [](int, std::unique_ptr<Endpoint> inner) -> std::unique_ptr<Endpoint> {
              return std::make_unique<Forgetful>(std::move(inner));
            }});
  gpus.access(1).leave_in_messages();
  std::vector<std::uint64_t> source(kWords);
  for (std::uint64_t round = 1; round <= 20; ++round) {
    if (round == 10) gpus.access(1).hold();
    for (std::size_t i = 0; i < source.size(); ++i) source[i] = round * 100000 + i;
    const auto number = gpus.access(0).post(cuda::MailKind::kPut, 1, kWords * 8, source.data(), true, round);
    await([&] { return gpus.pes().word(1, kWord) == round; });
    for (Size i = 0; i < kWords; ++i)
      ASSERT_EQ(gpus.value(1, i), round * 100000 + static_cast<std::uint64_t>(i)) << round << " " << i;
    await([&] { return gpus.access(0).sent() >= number; });
  }
  EXPECT_EQ(gpus.pes().error(), "");
}

TEST(KernelRequests, OfNegativeBytesAreAnError) {
  Gpus gpus;
  gpus.access(0).post_held(kData, 1, 2, 3, -8);
  await([&] { return !gpus.pes().error().empty(); });
  EXPECT_EQ(gpus.pes().error(), "PE 0: bytes: -8 given to a kernel's put or get, allowed are 0 to 16");
}

/// Data in a request needs no reading, yet it goes behind data that is still being read.
TEST(KernelRequests, ThatHoldTheirDataStayInOrder) {
  Gpus gpus({.seed = 5, .delayed_polls = 4, .repeated_per_mille = 100});
  std::vector<std::uint64_t> source(kWords);
  for (std::uint64_t round = 1; round <= 20; ++round) {
    for (std::size_t i = 0; i < source.size(); ++i) source[i] = round * 100000 + i;
    const auto number = gpus.access(0).post(cuda::MailKind::kPut, 1, kWords * 8, source.data(), false, 0);
    gpus.access(0).post_held(kData + kWords * 8, round, ~round, round);
    await([&] { return gpus.pes().word(1, kWord) == round; });
    for (const Size i : {Size{0}, kWords / 2, kWords - 1})
      EXPECT_EQ(gpus.value(1, i), round * 100000 + static_cast<std::uint64_t>(i)) << round;
    EXPECT_EQ(gpus.value(1, kWords), round);
    EXPECT_EQ(gpus.value(1, kWords + 1), ~round);
    await([&] { return gpus.access(0).sent() >= number; });
  }
  const auto flushed = [&] {
    const auto flush = gpus.access(0).post(cuda::MailKind::kFlush, 0, 0, nullptr, false, 0);
    await([&] { return gpus.access(0).answered() >= flush; });
    return gpus.access(0).readings();
  };
  const std::uint64_t before = flushed();
  gpus.access(0).post_held(kData, 1, 2, 21);
  EXPECT_EQ(flushed(), before);
  EXPECT_EQ(gpus.pes().error(), "");
}

/// The same for data beside requests, of which more are posted than the ring has places.
TEST(KernelRequests, ThatHaveTheirDataBesideThemStayInOrder) {
  Gpus gpus({.seed = 7, .delayed_polls = 4, .repeated_per_mille = 100});
  std::vector<std::uint64_t> source(kWords);
  constexpr Size kMost = cuda::kMostBeside / 8;
  std::uint64_t number = 0;
  for (std::uint64_t round = 1; round <= 5 * cuda::kMailPlaces; ++round) {
    const bool is_read_before = round % 64 == 1;
    const Size words = round % 3 == 0 ? kMost : 3;
    if (is_read_before) {
      await([&] { return gpus.access(0).sent() >= number; });
      std::fill(source.begin(), source.end(), round);
      gpus.access(0).post(cuda::MailKind::kPut, 1, kWords * 8, source.data(), false, 0);
    }
    number = gpus.access(0).post_beside(kData + 8, round * 10000, words, round);
    if (round % 16 != 1) continue;
    await([&] { return gpus.pes().word(1, kWord) >= round; });
    if (is_read_before) {
      EXPECT_EQ(gpus.value(1, 0), round);
    }
    for (Size i = 0; i < words; ++i)
      EXPECT_EQ(gpus.value(1, 1 + i), round * 10000 + static_cast<std::uint64_t>(i)) << round << " " << i;
  }
  EXPECT_EQ(gpus.pes().error(), "");
  gpus.access(0).post_beside(kData, 0, kMost + 1, 1);
  await([&] { return !gpus.pes().error().empty(); });
  EXPECT_EQ(gpus.pes().error(), "PE 0: bytes: 65544 given to a kernel's put or get, allowed are 0 to 65536");
}

/// An answer that finds no room gives its reading up to that of another PE.
TEST(KernelRequests, AreAnsweredBesidePesThatTakeTheirTime) {
  std::atomic<int> without{1};
  Gpus gpus(3, {.wrap = testing::pe_0_without(without)});
  std::array<std::vector<std::uint64_t>, 2> got{std::vector<std::uint64_t>(100), std::vector<std::uint64_t>(100)};
  const auto ask = [&](int pe) {
    return gpus.access(pe).post(cuda::MailKind::kGet, 0, 800, got[static_cast<std::size_t>(pe - 1)].data(), false, 0);
  };
  std::memset(gpus.pes().memory(0) + kData, 3, 800);
  const std::uint64_t slow = ask(1);
  await([&] { return gpus.access(0).readings() > 0; });
  const std::uint64_t quick = ask(2);
  await([&] { return gpus.access(2).answered() >= quick; });
  EXPECT_LT(gpus.access(1).answered(), slow);
  without = -1;
  await([&] { return gpus.access(1).answered() >= slow; });
  EXPECT_EQ(got[0], std::vector<std::uint64_t>(100, 0x0303030303030303));
  EXPECT_EQ(got[1], got[0]);
  EXPECT_EQ(gpus.pes().error(), "");
}

TEST(KernelRequests, AreAnsweredOnceDataIsInPlace) {
  Gpus gpus;
  for (const int pe : {0, 1}) gpus.access(pe).hold();
  std::vector<std::uint64_t> source(kWords, 5), got(kWords, 0);
  const auto put = gpus.access(0).post(cuda::MailKind::kPut, 1, kWords * 8, source.data(), false, 0);
  const auto flush = gpus.access(0).post(cuda::MailKind::kFlush, 0, 0, nullptr, false, 0);
  await([&] { return gpus.access(0).answered() >= flush; });
  EXPECT_GE(gpus.access(0).sent(), put);
  EXPECT_EQ(gpus.value(1, kWords - 1), 5U);
  const auto get = gpus.access(0).post(cuda::MailKind::kGet, 1, kWords * 8, got.data(), false, 0);
  await([&] { return gpus.access(0).answered() >= get; });
  EXPECT_EQ(got, source);
  const Requests requests = gpus.access(0).kernel_requests()->requests();
  EXPECT_EQ(requests.posted, get);
  EXPECT_EQ(requests.sent, get);
  EXPECT_EQ(requests.answered, get);
}

/// A host that has waited for its kernels, and then settles, finds their puts complete.
TEST(KernelRequests, PrecedeTheHostsLaterRequests) {
  Gpus gpus;
  std::vector<std::uint64_t> source(1);
  for (std::uint64_t round = 1; round <= 200; ++round) {
    source[0] = round;
    gpus.access(0).post(cuda::MailKind::kPut, 1, 8, source.data(), false, 0);
    gpus.pes().proxy(0).settle();
    ASSERT_EQ(gpus.value(1, 0), round);
  }
}

TEST(KernelRequests, TakeSlotsAgainThatAreAnswered) {
  Gpus gpus;
  constexpr std::uint64_t kRequests = 3 * cuda::kMailSlots;
  for (std::uint64_t i = 1; i <= kRequests; ++i) gpus.access(0).post(cuda::MailKind::kPut, 1, 0, nullptr, true, i);
  const auto flush = gpus.access(0).post(cuda::MailKind::kFlush, 0, 0, nullptr, false, 0);
  await([&] { return gpus.access(0).answered() >= flush; });
  EXPECT_EQ(gpus.pes().word(1, kWord), kRequests);
  EXPECT_EQ(gpus.pes().error(), "");
}

/// Data for a PE that is not reached has been read, and leaves room for that of puts to another one.
TEST(KernelRequests, PassAPeThatIsNotReached) {
  std::atomic<int> without{1};
  Gpus gpus(3, {.wrap = pe_0_without(without)});
  std::vector<std::uint64_t> source(kWords, 5);
  for (std::uint64_t i = 1; i <= 20; ++i)
    gpus.access(0).post(cuda::MailKind::kPut, 1, kWords * 8, source.data(), true, i);
  for (std::uint64_t i = 1; i <= 20; ++i)
    gpus.access(0).post(cuda::MailKind::kPut, 2, kWords * 8, source.data(), true, i);
  await([&] { return gpus.pes().word(2, kWord) == 20; });
  EXPECT_EQ(gpus.value(2, kWords - 1), 5U);
  EXPECT_EQ(gpus.pes().word(1, kWord), 0U);
  without = -1;
  await([&] { return gpus.pes().word(1, kWord) == 20; });
  EXPECT_EQ(gpus.pes().error(), "");
}

/// Five PEs ask PE 0, whose answers take their time. Its puts go on.
TEST(KernelRequests, FindRoomBesideAnswers) {
  AskedOne::State state;
  state.is_deaf = false;
  state.is_mute = true;
  Gpus gpus(6, asked(state));
  std::vector<std::uint64_t> got(6), source(kWords, 5);
  for (int pe = 1; pe < 6; ++pe)
    gpus.access(pe).post(cuda::MailKind::kGet, 0, 8, &got[static_cast<std::size_t>(pe)], false, 0);
  for (int pe = 1; pe < 6; ++pe) await([&] { return gpus.access(pe).sent() == 1; });
  await([&] { return gpus.access(0).readings() > 0; });
  for (std::uint64_t i = 1; i <= 20; ++i)
    gpus.access(0).post(cuda::MailKind::kPut, 1, kWords * 8, source.data(), true, i);
  await([&] { return gpus.pes().word(1, kWord) == 20; });
  state.is_mute = false;
  for (int pe = 1; pe < 6; ++pe) await([&] { return gpus.access(pe).answered() == 1; });
  EXPECT_EQ(gpus.pes().error(), "");
}

/// Each of five PEs asks ten times. Each gets its next answer once all others have had one more.
TEST(KernelRequests, AreAnsweredInTurns) {
  constexpr std::uint64_t kGets = 10;
  AskedOne::State state;
  Gpus gpus(6, asked(state));
  std::vector<std::uint64_t> got(6);
  for (int pe = 1; pe < 6; ++pe)
    for (std::uint64_t i = 1; i <= kGets; ++i)
      gpus.access(pe).post(cuda::MailKind::kGet, 0, 8, &got[static_cast<std::size_t>(pe)], false, 0);
  for (int pe = 1; pe < 6; ++pe) await([&] { return gpus.access(pe).sent() == kGets; });
  state.is_deaf = false;
  for (int pe = 1; pe < 6; ++pe) await([&] { return gpus.access(pe).answered() == kGets; });
  state.expect_turns(5, kGets);
}

}  // namespace
}  // namespace tandem::wire::testing
