// Kernels with kEpochFirst, which on a GPU may run beside the launch before until they take their epoch.

#include <gtest/gtest.h>

#include "tandem/advanced/check_matcher.h"

namespace tandem::check_test {

namespace {

/// Counts its launches in a word that only its own block uses.
template <bool LoadsEarly, bool Says>
struct CountLaunches {
  static constexpr bool kEpochFirst = Says;
  struct Args {
    Epochs epochs;
    float* sum;
  };
  template <class Block>
  static void run(Block& block, const Args& a) {
    float value = 0;
    if (LoadsEarly) value = block.load_scalar(a.sum);
    block.next_epoch(a.epochs);
    if (!LoadsEarly) value = block.load_scalar(a.sum);
    block.store_scalar(a.sum, value + 1);
  }
};

template <class K>
CheckResult check_launches() {
  return check_kernel<K>(
      {1, 32},
      [](World& world) {
        typename K::Args args{world.heap().epochs(1, "epochs"), world.heap().template allocate_local<float>(1, "sum")};
        const float zero = 0;
        world.copy_in(args.sum, &zero, sizeof zero);
        return args;
      },
      {.pes = 1, .schedules = 2});
}

TEST(EpochFirst, TouchesNothingBeforeItTakesItsEpoch) {
  const CheckResult early = check_launches<CountLaunches<true, true>>();
  ASSERT_THAT(early, has_finding("before_epoch"));
  EXPECT_EQ(early.findings.size(), 1U) << early.text();
  EXPECT_EQ(early.findings[0].sites[0].operation, "load");
  EXPECT_NE(early.findings[0].missing.find("`next_epoch` before it"), std::string::npos);
  EXPECT_THAT((check_launches<CountLaunches<false, true>>()), is_clean());
  // Without kEpochFirst a kernel begins when the one before it has ended.
  EXPECT_THAT((check_launches<CountLaunches<true, false>>()), is_clean());
}

}  // namespace

}  // namespace tandem::check_test
