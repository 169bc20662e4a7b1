// The GPU of a PE is current while it has to be, and then the thread's own is, which is not started for that.
#include "cuda/device_guard.h"

#include <cuda.h>
#include <cuda_runtime.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <optional>
#include <set>
#include <vector>

#include "cuda/driver.h"
#include "cuda/error.h"
#include "tandem/error.h"

struct CUctx_st {
  int device;
};

namespace {

/// What CUDA keeps for a thread, and which GPUs the process has started.
struct Thread {
  int chosen = 0;                   // by cudaSetDevice
  std::vector<CUcontext> contexts;  // the last one is current
  std::set<int> started{1};
  int retained = 0;
  CUresult pushes = CUDA_SUCCESS;
} thread;

CUcontext primary(int device) {
  static std::array<CUctx_st, 2> all{CUctx_st{0}, CUctx_st{1}};
  return &all.at(static_cast<std::size_t>(device));
}

}  // namespace

cudaError_t cudaGetDevice(int* device) {
  *device = thread.contexts.empty() ? thread.chosen : thread.contexts.back()->device;
  return cudaSuccess;
}

cudaError_t cudaSetDevice(int device) {
  thread.chosen = device;
  thread.started.insert(device);
  if (!thread.contexts.empty()) thread.contexts.pop_back();
  thread.contexts.push_back(primary(device));
  return cudaSuccess;
}

namespace tandem::cuda {

const Driver& driver() {
  static const Driver only{[](CUcontext* context, int device) {
                             ++thread.retained;
                             *context = primary(device);
                             return CUDA_SUCCESS;
                           },
                           [](int) {
                             --thread.retained;
                             return CUDA_SUCCESS;
                           },
                           [](CUcontext context) {
                             if (thread.pushes == CUDA_SUCCESS) thread.contexts.push_back(context);
                             return thread.pushes;
                           },
                           [](CUcontext* context) {
                             *context = thread.contexts.back();
                             thread.contexts.pop_back();
                             return CUDA_SUCCESS;
                           }};
  return only;
}

void check(CUresult code, const char* what) {
  if (code != CUDA_SUCCESS) throw RuntimeFailure(what);
}

namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

int current() {
  int device = -1;
  cudaGetDevice(&device);
  return device;
}

TEST(DeviceGuard, StartsNoGpuForItsThread) {
  thread = {};
  {
    const DeviceGuard guard(1);
    EXPECT_EQ(current(), 1);
    const DeviceGuard within(1);
    EXPECT_EQ(thread.retained, 1);
  }
  EXPECT_EQ(current(), 0);
  EXPECT_THAT(thread.contexts, IsEmpty());
  EXPECT_THAT(thread.started, ElementsAre(1));
  EXPECT_EQ(thread.retained, 0);
}

TEST(DeviceGuard, LeavesAThreadsGpuAsItWas) {
  for (const int own : {0, 1}) {
    thread = {};
    cudaSetDevice(own);
    { const DeviceGuard guard(1); }
    EXPECT_EQ(current(), own);
    EXPECT_THAT(thread.contexts, ElementsAre(primary(own)));
    EXPECT_EQ(thread.retained, 0);
  }
}

TEST(DeviceGuard, OutlastsAnotherChoiceWithin) {
  thread = {};
  {
    const DeviceGuard guard(1);
    cudaSetDevice(1);
  }
  EXPECT_EQ(current(), 0);
}

TEST(DeviceGuard, SaysWhatItCannot) {
  thread = {};
  thread.pushes = CUDA_ERROR_INVALID_CONTEXT;
  EXPECT_THROW(DeviceGuard(1), RuntimeFailure);
  EXPECT_EQ(current(), 0);
  EXPECT_EQ(thread.retained, 0);
}

}  // namespace
}  // namespace tandem::cuda
