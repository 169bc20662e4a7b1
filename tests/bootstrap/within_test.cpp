// Waits for calls that know no deadline.
#include "bootstrap/protocol/within.h"

#include <gtest/gtest.h>

#include <stdexcept>

namespace tandem::bootstrap {
namespace {

TEST(Within, GivesTheResultOrTheError) {
  EXPECT_EQ(within(Deadline(60), [] { return 7; }), 7);
  EXPECT_THROW(within(Deadline(60), []() -> int { throw std::runtime_error("no"); }), std::runtime_error);
}

TEST(Within, DoesNotWaitForWorkThatBlocks) {
  std::promise<void> release;
  const auto released = release.get_future().share();
  EXPECT_EQ(within(Deadline(0.01),
                   [released] {
                     released.wait();
                     return 7;
                   }),
            std::nullopt);
  release.set_value();
}

}  // namespace
}  // namespace tandem::bootstrap
