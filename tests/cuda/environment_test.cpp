// The environment that CUDA's driver reads when it starts.
#include <gtest/gtest.h>

#include <cstdlib>

#include "cuda/world/devices.h"

namespace tandem::test {
namespace {

/// Registering kernels may start the driver, and a world registers them before it counts GPUs.
TEST(Environment, IsSetBeforeAnyCallOfTheBackend) {
  unsetenv("CUDA_DEVICE_MAX_CONNECTIONS");
  const cuda::CudaDevices devices;
  const char* const queues = std::getenv("CUDA_DEVICE_MAX_CONNECTIONS");
  ASSERT_NE(queues, nullptr);
  EXPECT_STREQ(queues, "32");
}

TEST(Environment, KeepsAUsersOwnChoice) {
  setenv("CUDA_DEVICE_MAX_CONNECTIONS", "4", 1);
  const cuda::CudaDevices devices;
  EXPECT_STREQ(std::getenv("CUDA_DEVICE_MAX_CONNECTIONS"), "4");
  unsetenv("CUDA_DEVICE_MAX_CONNECTIONS");
}

}  // namespace
}  // namespace tandem::test
