// The processors that a process may use.
#include "host/processors.h"

#include <gtest/gtest.h>

namespace tandem::host {
namespace {

TEST(Processors, AreThoseOfTheAffinityWithinTheShareOfTheControlGroup) {
  EXPECT_EQ(processors(16, ""), 16);
  EXPECT_EQ(processors(16, "max 100000\n"), 16);
  EXPECT_EQ(processors(16, "200000 100000\n"), 2);
  EXPECT_EQ(processors(16, "250000 100000\n"), 3) << "a part of a processor counts";
  EXPECT_EQ(processors(4, "800000 100000\n"), 4);
  EXPECT_EQ(processors(16, "1000 100000\n"), 1);
  EXPECT_EQ(processors(0, ""), 1) << "the number is not known";
  EXPECT_EQ(processors(8, "nonsense"), 8);
  EXPECT_GE(processors(), 1);
}

}  // namespace
}  // namespace tandem::host
