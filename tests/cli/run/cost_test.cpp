// How long and how much a simulation between very many PEs takes.
#include "tools/tandem/run/cost.cpp"

#include <gmock/gmock.h>

namespace tandem::cli {
namespace {

using ::testing::HasSubstr;
using ::testing::ThrowsMessage;

constexpr double kGib = 1 << 30;

TEST(Cost, ManyPairsOfPesAreMinutes) {
  EXPECT_EQ(cost_note(Collective::kAllToAll, 8192, 2, 100 * kGib),
            "all_to_all between 8192 PEs: the simulation of 2 calls takes about 13 minutes and 64.4 GiB");
  EXPECT_EQ(cost_note(Collective::kAllToAll, 512, 2, 100 * kGib), "");
  EXPECT_EQ(cost_note(Collective::kAllReduce, 8192, 2, 100 * kGib), "");
  EXPECT_THAT(cost_note(Collective::kAllToAll, 512, 1000, 100 * kGib), HasSubstr("1000 calls takes about 26 minutes"));
}

TEST(Cost, MoreThanTheMemoryIsRefused) {
  EXPECT_THAT([] { cost_note(Collective::kAllToAll, 8192, 2, 16 * kGib); },
              ThrowsMessage<InvalidArgument>("all_to_all between 8192 PEs: its simulation needs about 64 GiB, this "
                                             "computer has 16.0 GiB: fewer PEs or nodes"));
}

}  // namespace
}  // namespace tandem::cli
