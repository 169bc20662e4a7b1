// The values by which PEs compare their calls before each one.
#include <gtest/gtest.h>

#include "cuda/device/signal_kernels.h"

namespace tandem::cuda {
namespace {

TEST(Comparison, TellsACallFromTheOneBeforeInItsSlotWhereNumbersComeRound) {
  for (const Epoch last : {Epoch{0}, Epoch{1} << 32, Epoch{1} << 40, Epoch{1} << 63})
    for (Epoch call = last == 0 ? 1 : last - 4; call < last + 5; ++call) {
      const Epoch before = call > 2 ? signal_value_of(call - 2, 7) : 0;
      EXPECT_FALSE(is_of_call(before, call)) << call;
      EXPECT_TRUE(is_of_call(signal_value_of(call, 7), call)) << call;
      EXPECT_TRUE(is_of_call(signal_value_of(call, 0), call)) << call;
      EXPECT_NE(signal_value_of(call, 7), signal_value_of(call, 8)) << call;
    }
}

}  // namespace
}  // namespace tandem::cuda
