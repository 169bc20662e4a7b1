// The environment that CUDA's driver reads when it starts.
#include <gmock/gmock.h>

#include <cstdlib>
#include <optional>

#include "cuda/world/devices.h"

namespace tandem::test {
namespace {

/// The tests run below launchers, too, whose variables describe other worlds.
class Environment : public ::testing::Test {
 protected:
  void SetUp() override {
    for (const char* const name : {"CUDA_DEVICE_MAX_CONNECTIONS", "RANK", "WORLD_SIZE", "LOCAL_WORLD_SIZE",
                                   "SLURM_NNODES", "TANDEM_HOST", "TANDEM_NODE_SIZE"})
      unsetenv(name);
  }
};

/// Registering kernels may start the driver, and a world registers them before it counts GPUs.
TEST_F(Environment, IsSetBeforeAnyCallOfTheBackend) {
  unsetenv("CUDA_DEVICE_MAX_CONNECTIONS");
  const cuda::CudaDevices devices;
  const char* const queues = std::getenv("CUDA_DEVICE_MAX_CONNECTIONS");
  ASSERT_NE(queues, nullptr);
  EXPECT_STREQ(queues, "32");
}

TEST_F(Environment, KeepsAUsersOwnChoice) {
  setenv("CUDA_DEVICE_MAX_CONNECTIONS", "4", 1);
  const cuda::CudaDevices devices;
  EXPECT_STREQ(std::getenv("CUDA_DEVICE_MAX_CONNECTIONS"), "4");
  unsetenv("CUDA_DEVICE_MAX_CONNECTIONS");
}

/// Returns the line of the log that making a world writes.
std::string warning(cuda::CudaDevices& devices, bool several_nodes) {
  ::testing::internal::CaptureStderr();
  static_cast<void>(devices.load_kernels({0}, several_nodes));
  return ::testing::internal::GetCapturedStderr();
}

TEST_F(Environment, WarnsOfFewQueuesInWorldsOfSeveralNodes) {
  setenv("CUDA_DEVICE_MAX_CONNECTIONS", "4", 1);
  cuda::CudaDevices few;
  unsetenv("CUDA_DEVICE_MAX_CONNECTIONS");
  cuda::CudaDevices enough;
  EXPECT_THAT(warning(few, true),
              ::testing::AllOf(::testing::HasSubstr("CUDA_DEVICE_MAX_CONNECTIONS is '4'"),
                               ::testing::HasSubstr("set it to 32 before the first CUDA call of any library")));
  EXPECT_EQ(warning(few, false), "");
  EXPECT_EQ(warning(enough, true), "");
  EXPECT_THAT(cuda::lacks_queues({std::nullopt, true}), ::testing::HasSubstr("CUDA was started before Tandem"));
  EXPECT_EQ(cuda::lacks_queues({"32", true}), "");
}

/// A process of a launcher keeps CUDA's 8 queues, unless a variable names several nodes.
TEST_F(Environment, WarnsWhereNothingNamedTheNodes) {
  unsetenv("CUDA_DEVICE_MAX_CONNECTIONS");
  for (const char* const name : {"RANK", "WORLD_SIZE"}) setenv(name, "2", 1);
  cuda::CudaDevices devices;
  for (const char* const name : {"RANK", "WORLD_SIZE"}) unsetenv(name);
  EXPECT_THAT(warning(devices, true), ::testing::HasSubstr("nothing named this world's several nodes"));
}

}  // namespace
}  // namespace tandem::test
