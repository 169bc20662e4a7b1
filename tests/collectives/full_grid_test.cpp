#include "support/full_grid.h"

#include <gtest/gtest.h>

namespace tandem::test {
namespace {

TEST(FullGrid, ShardsShareEveryCaseOnce) {
  for (int number = 0; number < 20; ++number) {
    EXPECT_TRUE(parse_grid_shard("1").takes(static_cast<std::uint64_t>(number)));
    int taken = 0;
    for (const char* text : {"1/3", "2/3", "3/3"})
      taken += parse_grid_shard(text).takes(static_cast<std::uint64_t>(number)) ? 1 : 0;
    EXPECT_EQ(taken, 1) << number;
  }
  EXPECT_TRUE(parse_grid_shard("2/3").takes(1));
}

TEST(FullGrid, BadValuesAreErrors) {
  for (const char* text :
       {"", "0", "2", "yes", "0/3", "4/3", "1/0", "-1/3", "1/", "/3", "1/3x", "1 /3", "1/99999999999"})
    EXPECT_THROW(parse_grid_shard(text), std::invalid_argument) << text;
}

}  // namespace
}  // namespace tandem::test
