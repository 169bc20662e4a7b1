// A launch fails with its own error, and with no other one.
#include "cuda/driver/launch.h"

#include <gtest/gtest.h>

#include <string>

#include "cuda/simulated/gpus.h"
#include "tandem/error.h"

namespace tandem::test {
namespace {

int launched_with = 0;

void kernel(int* where, int value) { *where = value; }

std::string outcome() {
  launched_with = 0;
  try {
    cuda::launch_kernel("wait_signal", &kernel, dim3(2, 3), 32, nullptr, &launched_with, 7);
    return "";
  } catch (const RuntimeFailure& error) {
    return error.what();
  }
}

TEST(Launch, IsNotSomebodyElsesError) {
  leave_error(cudaErrorMemoryAllocation);
  EXPECT_EQ(outcome(), "");
  EXPECT_EQ(launched_with, 7);
  EXPECT_EQ(launched().gridDim.x, 2U);
  EXPECT_EQ(launched().gridDim.y, 3U);
  EXPECT_EQ(launched().blockDim.x, 32U);
  EXPECT_EQ(cudaGetLastError(), cudaErrorMemoryAllocation) << "left to whom it is for";
}

TEST(Launch, FailsWithItsOwnError) {
  fail_next("cudaLaunchKernelEx", CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(outcome(), "wait_signal: invalid argument");
  EXPECT_EQ(launched_with, 0);
}

}  // namespace
}  // namespace tandem::test
