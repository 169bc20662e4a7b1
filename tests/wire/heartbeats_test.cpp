// Heartbeats between PEs of several hosts.
#include <gmock/gmock.h>

#include <map>
#include <set>
#include <utility>

#include "wire/pes.h"

namespace tandem::wire {
namespace {

using testing::await;
using testing::Pes;
using testing::PesSetup;
using testing::Wrapped;

/// An endpoint that counts messages by receiver, stops sending, and stops altogether.
class Watched final : public Wrapped {
 public:
  struct State {
    std::atomic<bool> is_cut{false};      ///< sends nothing
    std::atomic<bool> is_stopped{false};  ///< as in a process that is stopped
    std::array<std::atomic<int>, 8> sent{};
  };

  Watched(std::unique_ptr<Endpoint> inner, State& state) : Wrapped(std::move(inner)), state_(state) {}

  bool send(int pe, View header, View data, const OnSent& sent) override {
    ++state_.sent[static_cast<std::size_t>(pe)];
    return state_.is_cut || inner_->send(pe, header, data, sent);
  }
  void wait(int ms) override {
    inner_->wait(ms);
    while (state_.is_stopped) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }

 private:
  State& state_;
};

/// Three hosts of two PEs, of which PE 0 does not reach PE 2. So the error of a world that is not made names these two.
TEST(Greetings, ReachPesBehindOneThatIsNotReached) {
  PesSetup setup;
  std::atomic<int> without{2};
  setup.host_size = 2;
  setup.wrap = testing::pe_0_without(without);
  setup.heartbeat = [](int) {
    Heartbeat heartbeat;
    heartbeat.look = [] { return 0; };
    heartbeat.on_look = [](int, std::uint64_t) {};
    heartbeat.on_silence = [](const std::vector<int>&) {};
    return heartbeat;
  };
  Pes pes(6, setup);
  for (const int pe : {0, 1, 3, 4, 5}) await([&] { return pes.proxy(pe).unheard().empty(); });
  await([&] { return pes.proxy(2).unheard() == std::vector<int>{0}; });
}

/// Two hosts of three PEs that exchange nothing but heartbeats.
class Heart : public ::testing::Test {
 protected:
  static constexpr int kPes = 6, kHost = 3;

  void TearDown() override {
    for (auto& state : states_) state.is_stopped = false;
    pes_.reset();
  }
  void start(double silence_s) {
    PesSetup setup;
    setup.host_size = kHost;
    setup.wrap = [&](int pe, std::unique_ptr<Endpoint> inner) -> std::unique_ptr<Endpoint> {
      return std::make_unique<Watched>(std::move(inner), state(pe));
    };
    setup.heartbeat = [this](int pe) { return heartbeat(pe); };
    setup.silence_s = silence_s;
    setup.is_over = [this](int pe) { return over_pe_ == pe; };
    pes_.emplace(kPes, setup);
    for (int pe = 0; pe < kPes; ++pe) await([&] { return pes_->proxy(pe).unheard().empty(); });
  }
  Watched::State& state(int pe) { return states_[static_cast<std::size_t>(pe)]; }
  bool has_lost(int pe, int other) {
    const std::lock_guard lock(mutex_);
    return lost_.contains({pe, other});
  }
  std::vector<int> first_losses(int pe) {
    const std::lock_guard lock(mutex_);
    return first_losses_[pe];
  }
  std::uint64_t look_of(int other, int pe) {
    const std::lock_guard lock(mutex_);
    return looks_[{pe, other}];
  }

  std::array<std::atomic<std::uint64_t>, kPes> own_looks_{};
  std::atomic<int> over_pe_{-1};  // the PE that takes the world for over

 private:
  Heartbeat heartbeat(int pe) {
    Heartbeat heartbeat;
    heartbeat.look = [this, pe] { return own_looks_[static_cast<std::size_t>(pe)].load(); };
    heartbeat.on_look = [this, pe](int other, std::uint64_t look) {
      const std::lock_guard lock(mutex_);
      looks_[{pe, other}] = look;
    };
    heartbeat.on_silence = [this, pe](const std::vector<int>& pes) {
      const std::lock_guard lock(mutex_);
      for (const int silent : pes) lost_.emplace(pe, silent);
      first_losses_.emplace(pe, pes);
    };
    return heartbeat;
  }

  std::mutex mutex_;
  std::set<std::pair<int, int>> lost_;                  // the PE that lost another one, and that one
  std::map<int, std::vector<int>> first_losses_;        // by the PE that lost them
  std::map<std::pair<int, int>, std::uint64_t> looks_;  // by the PE that knows it, and its PE
  std::array<Watched::State, kPes> states_;
  std::optional<Pes> pes_;
};

TEST_F(Heart, BeatsAlongTheRailAlone) {
  start(600);
  for (int pe = 0; pe < kPes; ++pe)
    await([&] { return state(pe).sent[static_cast<std::size_t>((pe + kHost) % kPes)] > 5; });
  for (int from = 0; from < kPes; ++from)
    for (int to = 0; to < kPes; ++to) {
      if (to % kHost == from % kHost) continue;
      const int greetings = to / kHost == from / kHost ? 0 : 1;
      EXPECT_EQ(state(from).sent[static_cast<std::size_t>(to)], greetings) << from << " to " << to;
    }
}

/// PE 1 of the other host has a look, and its rail's PE passes it on to the others.
TEST_F(Heart, TellsAllPesOfAHostTheLooksOfAnother) {
  start(600);
  own_looks_[1] = 7;
  for (int pe = kHost; pe < kPes; ++pe) await([&] { return look_of(1, pe) == 7; });
}

TEST_F(Heart, LosesAPeThatIsCutOff) {
  start(1);
  state(1).is_cut = true;
  for (int pe = kHost; pe < kPes; ++pe) await([&] { return has_lost(pe, 1); });
}

/// A host is cut off while its PEs' heartbeats come at other times. The others name all of its PEs at once.
TEST_F(Heart, LosesAHostAtOnce) {
  start(4);
  for (const int pe : {0, 1, 2}) {
    state(pe).is_cut = true;
    std::this_thread::sleep_for(std::chrono::milliseconds(60));
  }
  for (int pe = kHost; pe < kPes; ++pe) await([&] { return has_lost(pe, 0); });
  for (int pe = kHost; pe < kPes; ++pe) EXPECT_EQ(first_losses(pe), (std::vector<int>{0, 1, 2})) << "PE " << pe;
}

/// A PE whose kernel gave up says so when its program asks. Until then the others must not take it for stopped.
TEST_F(Heart, GoesOnInAPeThatTakesTheWorldForOver) {
  start(600);
  over_pe_ = 1;
  const int before = state(1).sent[4];
  await([&] { return state(1).sent[4] > before + 5; });
}

/// PE 4 hears PE 1 for its host. If PE 4 is stopped, all lose it, and none takes PE 1 for lost.
TEST_F(Heart, LosesTheOneThatIsStoppedAndNotThoseThatItHears) {
  start(2);
  state(4).is_stopped = true;
  for (const int pe : {0, 1, 2, 3, 5}) await([&] { return has_lost(pe, 4); });
  for (const int pe : {3, 5}) EXPECT_FALSE(has_lost(pe, 1));
}

}  // namespace
}  // namespace tandem::wire
