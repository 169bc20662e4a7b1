// A launch fails with its own error, and with nobody else's.
#include "cuda/launch.h"

#include <cuda_runtime.h>
#include <gtest/gtest.h>

#include <string>

#include "tandem/error.h"

namespace tandem::test {
namespace {

int launched_with = 0;

void kernel(int* where, int value) { *where = value; }

std::string outcome() {
  try {
    cuda::launch_kernel("wait_signal", &kernel, dim3(2, 3), 32, nullptr, &launched_with, 7);
    return "";
  } catch (const RuntimeFailure& error) {
    return error.what();
  }
}

TEST(Launch, IsNotSomebodyElsesError) {
  gpu() = {};
  gpu().left_behind = cudaErrorMemoryAllocation;
  launched_with = 0;
  EXPECT_EQ(outcome(), "");
  EXPECT_EQ(launched_with, 7);
  EXPECT_EQ(gpu().launched.gridDim.x, 2U);
  EXPECT_EQ(gpu().launched.gridDim.y, 3U);
  EXPECT_EQ(gpu().launched.blockDim.x, 32U);
  EXPECT_EQ(cudaGetLastError(), cudaErrorMemoryAllocation) << "left to whom it is for";
}

TEST(Launch, FailsWithItsOwnError) {
  gpu() = {};
  gpu().launches = cudaErrorInvalidValue;
  launched_with = 0;
  EXPECT_EQ(outcome(), "wait_signal: invalid argument");
  EXPECT_EQ(launched_with, 0);
}

}  // namespace
}  // namespace tandem::test
