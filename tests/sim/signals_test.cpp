#include "sim/memory/signals.h"

#include <gtest/gtest.h>

#include <deque>
#include <vector>

namespace tandem::sim {
namespace {

class SignalBoardTest : public testing::Test {
 protected:
  /// Waits until both words have the value, and notes the number then.
  void wait_for(Epoch value, int number) {
    Noted& noted = waits_.emplace_back(Noted{{}, number, &ready_});
    noted.wait.words = words_;
    noted.wait.count = 2;
    noted.wait.value = value;
    noted.wait.argument = &noted;
    noted.wait.ready = [](void* argument) {
      const auto* const done = static_cast<Noted*>(argument);
      done->ready->push_back(done->number);
    };
    ASSERT_FALSE(noted.wait.advance());
    board_.add(noted.wait);
  }
  void set(int word, Epoch value) { board_.apply({words_ + word, value}, {.pe = 1}); }

  struct Noted {
    SignalWait wait;
    int number;
    std::vector<int>* ready;
  };
  static constexpr Size kBytes = Size{1} << 20;
  Memory memory_{2, false, kBytes, kBytes};
  Signal* words_ = reinterpret_cast<Signal*>(
      memory_.allocate_symmetric(0, MemoryKind::kControl, 2 * Size{sizeof(Signal)}, "words", sizeof(Signal)));
  SignalBoard board_{memory_};
  std::vector<int> ready_;
  std::deque<Noted> waits_;
};

TEST_F(SignalBoardTest, WaitsForOneWordGoOnInTheirOrder) {
  wait_for(1, 10);
  wait_for(2, 20);
  wait_for(1, 30);
  wait_for(2, 40);
  set(1, 2);
  EXPECT_TRUE(ready_.empty());
  set(0, 1);
  EXPECT_EQ(ready_, (std::vector{10, 30}));
  set(0, 2);
  EXPECT_EQ(ready_, (std::vector{10, 30, 20, 40}));
}

TEST_F(SignalBoardTest, AWaitMovesToTheNextWordBehindThoseThatWaitThere) {
  set(0, 1);
  wait_for(1, 10);
  wait_for(2, 20);
  set(0, 2);
  wait_for(1, 30);
  set(1, 2);
  EXPECT_EQ(ready_, (std::vector{10, 20, 30}));
}

TEST_F(SignalBoardTest, ChangesOfAWordByOnePeKeepTheirOrder) {
  EXPECT_EQ(board_.own_changes(words_, 2, 1, 0), 0);
  EXPECT_EQ(board_.in_order(words_, 0, 100), 100);
  EXPECT_EQ(board_.in_order(words_, 0, 50), 101);
  EXPECT_EQ(board_.own_changes(words_, 2, 1, 0), 101);
  EXPECT_EQ(board_.own_changes(words_, 2, 1, 1), 0);
  EXPECT_EQ(board_.in_order(words_, 1, 60), 60);
}

}  // namespace
}  // namespace tandem::sim
