// The GPU of a PE is current while it has to be, and then the thread's own is, which is not started for that.
#include "cuda/driver/device_guard.h"

#include <gtest/gtest.h>

#include <thread>

#include "cuda/driver/driver.h"
#include "cuda/simulated/gpus.h"
#include "tandem/error.h"

namespace tandem::test {
namespace {

using cuda::DeviceGuard;

constexpr int kUnused = 0;  // current where none was chosen, and started by no test of this file
constexpr int kOwn = 1;
constexpr int kOther = 2;

int current() {
  int device = -1;
  cudaGetDevice(&device);
  return device;
}

/// On a thread that has no GPU yet.
template <class Work>
void on_a_thread(Work work) {
  std::thread(work).join();
}

class DeviceGuardTest : public ::testing::Test {
 public:
  DeviceGuardTest() : was_used_(has_context(kUnused)) {}
  ~DeviceGuardTest() override {
    EXPECT_EQ(has_context(kUnused), was_used_);
    EXPECT_EQ(retained(kOwn), 0);
    EXPECT_EQ(retained(kOther), 0);
  }

 private:
  const bool was_used_;
};

TEST_F(DeviceGuardTest, StartsNoGpuForItsThread) {
  on_a_thread([] {
    {
      const DeviceGuard guard(kOwn);
      EXPECT_EQ(current(), kOwn);
      const DeviceGuard within(kOwn);
      EXPECT_EQ(retained(kOwn), 1);
    }
    EXPECT_EQ(current(), kUnused);
    EXPECT_EQ(contexts_of_thread(), 0);
  });
}

TEST_F(DeviceGuardTest, LeavesAThreadsGpuAsItWas) {
  for (const int before : {kOwn, kOther})
    on_a_thread([&] {
      cudaSetDevice(before);
      { const DeviceGuard guard(kOwn); }
      EXPECT_EQ(current(), before);
      EXPECT_EQ(contexts_of_thread(), 1);
    });
}

TEST_F(DeviceGuardTest, OutlastsAnotherChoiceWithin) {
  on_a_thread([] {
    cudaSetDevice(kOther);
    {
      const DeviceGuard guard(kOwn);
      cudaSetDevice(kOwn);
    }
    EXPECT_EQ(current(), kOther);
  });
}

TEST_F(DeviceGuardTest, SaysWhatItCannot) {
  on_a_thread([] {
    for (const char* const call : {"cuDevicePrimaryCtxRetain", "cuCtxPushCurrent"}) {
      fail_next(call);
      EXPECT_THROW(DeviceGuard guard(kOwn), RuntimeFailure) << call;
      EXPECT_EQ(current(), kUnused);
      EXPECT_EQ(contexts_of_thread(), 0);
    }
  });
}

}  // namespace
}  // namespace tandem::test
