#include "sim/engine/event_queue.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <vector>

namespace tandem::sim {
namespace {

TEST(EventQueue, GivesEventsInOrderWhateverTheyCameIn) {
  std::mt19937_64 random(7);
  EventQueue queue;
  std::vector<Event> waiting;
  const auto before = [](const Event& a, const Event& b) { return a.before(b); };
  for (std::uint64_t step = 0; step < 20'000; ++step) {
    const bool take = !waiting.empty() && random() % 3 == 0;
    if (take) {
      const auto first = std::min_element(waiting.begin(), waiting.end(), before);
      const Event event = queue.pop();
      ASSERT_EQ(event.time, first->time);
      ASSERT_EQ(event.order, first->order);
      waiting.erase(first);
    } else if (waiting.size() < 300) {
      const Event event{static_cast<Time>(random() % 50), (random() % 4) << 32 | step, nullptr, nullptr};
      queue.push(event);
      waiting.push_back(event);
    }
  }
  std::sort(waiting.begin(), waiting.end(), before);
  for (const Event& event : waiting) ASSERT_EQ(queue.pop().order, event.order);
  EXPECT_TRUE(queue.empty());
}

}  // namespace
}  // namespace tandem::sim
