#include "tools/tandem/options/progress.cpp"

#include <gtest/gtest.h>

namespace tandem::cli {
namespace {

TEST(Progress, TheBarIsThePartThatIsDone) {
  EXPECT_EQ(progress_line(0, 4, 2, "ring"), "[..............................] 0 % 2 s  ring");
  EXPECT_EQ(progress_line(1, 4, 3, "ring"), "[#######.......................] 25 % 3 s  ring");
  EXPECT_EQ(progress_line(4, 4, 9, "ring"), "[##############################] 100 % 9 s  ring");
  EXPECT_EQ(progress_line(1'000'000'000, 2'000'000'000, 9, ""), "[###############...............] 50 % 9 s  ");
}

}  // namespace
}  // namespace tandem::cli
