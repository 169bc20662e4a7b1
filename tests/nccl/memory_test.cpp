// Memory: of programs, which ranks share, and of communicators, which comes and goes.
#include <fmt/format.h>

#include <atomic>
#include <cstring>
#include <numeric>

#include "program.h"

namespace tandem::nccl_test {
namespace {

using ::testing::Each;
using ::testing::StartsWith;

std::uint64_t stat(ncclComm_t comm, ncclCommMemStat_t which) {
  std::uint64_t value = 1;
  EXPECT_EQ(error_of(ncclCommMemStats(comm, which, &value)), "");
  return value;
}

/// Memory of ncclMemAlloc in a window.
struct Window {
  explicit Window(const Rank& r, std::size_t count) {
    const std::size_t bytes = count * sizeof(int);
    EXPECT_EQ(error_of(ncclMemAlloc(&memory, bytes)), "");
    EXPECT_EQ(error_of(ncclCommWindowRegister(r.comm, memory, bytes, &handle, kWindowSymmetric)), "");
  }
  int* ints() const { return static_cast<int*>(memory); }

  void* memory = nullptr;
  ncclWindow_t handle = nullptr;
};

TEST(NcclWindows, AreMemoryThatAllRanksReach) {
  run(3, [](const Rank& r) {
    constexpr std::size_t kCount = 5000;
    const Window in(r, kCount), out(r, 3 * kCount);
    std::iota(in.ints(), in.ints() + kCount, r.rank);
    ASSERT_EQ(error_of(ncclAllReduce(in.memory, out.memory, kCount, ncclInt32, ncclSum, r.comm, nullptr), r.comm), "");
    for (std::size_t i = 0; i < kCount; ++i) ASSERT_EQ(out.ints()[i], static_cast<int>(3 * i) + 3);
    ASSERT_EQ(error_of(ncclAllGather(in.memory, out.memory, kCount, ncclInt32, r.comm, nullptr), r.comm), "");
    for (std::size_t i = 0; i < 3; ++i) ASSERT_EQ(out.ints()[i * kCount + 7], static_cast<int>(i) + 7);
    // A call of the root alone gives its window; the others' buffers lie elsewhere.
    std::vector<int> elsewhere(kCount, -1);
    ASSERT_EQ(error_of(ncclReduce(in.memory, r.rank == 1 ? out.memory : elsewhere.data(), kCount, ncclInt32, ncclSum, 1,
                                  r.comm, nullptr)),
              "");
    if (r.rank == 1) {
      EXPECT_EQ(out.ints()[4], 15);
    }
    void* at_peer = nullptr;
    ASSERT_EQ(error_of(ncclGetPeerDevicePointer(in.handle, 4, (r.rank + 1) % 3, &at_peer)), "");
    EXPECT_EQ(*static_cast<int*>(at_peer), (r.rank + 1) % 3 + 1);
    ASSERT_EQ(error_of(ncclGetLsaDevicePointer(in.handle, 8, r.rank, &at_peer)), "");
    EXPECT_EQ(at_peer, in.ints() + 2);
    if (r.rank == 0) {  // the text is the process's last
      EXPECT_THAT(error_of(ncclGetPeerDevicePointer(in.handle, 20'000, 0, &at_peer)), StartsWith("4: offset: 20000"));
      EXPECT_THAT(error_of(ncclGetPeerDevicePointer(in.handle, 0, 3, &at_peer)), StartsWith("4: peer: 3 given"));
    }
    for (const Window* const window : {&in, &out})
      EXPECT_EQ(error_of(ncclCommWindowDeregister(r.comm, window->handle)), "");
    for (const Window* const window : {&in, &out}) EXPECT_EQ(error_of(ncclMemFree(window->memory)), "");
  });
}

TEST(NcclWindows, OfOtherMemoryAreCopied) {
  run(2, [](const Rank& r) {
    std::vector<int> data(100, r.rank + 1);
    ncclWindow_t window = nullptr;
    ASSERT_EQ(error_of(ncclCommWindowRegister(r.comm, data.data(), 400, &window, kWindowSymmetric)), "");
    EXPECT_EQ(error_of(ncclAllReduce(data.data(), data.data(), 100, ncclInt32, ncclSum, r.comm, nullptr)), "");
    EXPECT_THAT(data, Each(3));
    void* at_peer = &at_peer;
    EXPECT_THAT(error_of(ncclGetPeerDevicePointer(window, 0, 1 - r.rank, &at_peer)), StartsWith("5: window: "));
    EXPECT_EQ(at_peer, nullptr);
    EXPECT_EQ(error_of(ncclCommWindowDeregister(r.comm, window)), "");
  });
}

TEST(NcclWindows, SurviveThatTheirMemoryIsFreed) {
  run(2, [](const Rank& r) {
    constexpr std::size_t kCount = 4096;
    const Window old(r, kCount);
    for (int round = 0; round < 3; ++round) {
      // New memory may have the address of the old.
      if (round == 0) {
        EXPECT_EQ(error_of(ncclMemFree(old.memory)), "");
      }
      void* memory = nullptr;
      ASSERT_EQ(error_of(ncclMemAlloc(&memory, kCount * sizeof(int))), "");
      int* const data = static_cast<int*>(memory);
      std::fill_n(data, kCount, r.rank + round);
      ASSERT_EQ(error_of(ncclAllReduce(data, data, kCount, ncclInt32, ncclSum, r.comm, nullptr), r.comm), "");
      ASSERT_THAT(std::vector<int>(data, data + kCount), Each(2 * round + 1));
      EXPECT_EQ(error_of(ncclMemFree(memory)), "");
    }
    EXPECT_EQ(error_of(ncclCommWindowDeregister(r.comm, old.handle)), "");
  });
}

TEST(NcclOneSided, PutsArriveBeforeTheirSignals) {
  for (const int n : {1, 3})
    run(n, [](const Rank& r) {
      constexpr int kCount = 1000;
      const Window window(r, 3 * kCount);
      std::vector<int> data(kCount);
      std::vector<ncclWaitSignalDesc_t> all;
      all.reserve(static_cast<std::size_t>(r.n));
      for (int peer = 0; peer < r.n; ++peer) all.push_back({2, peer, 5, 1});
      for (int round = 0; round < 50; ++round) {
        std::fill(data.begin(), data.end(), 10 * round + r.rank);
        for (int peer = 0; peer < r.n; ++peer) {
          ASSERT_EQ(
              error_of(ncclPutSignal(data.data(), kCount, ncclInt32, peer, window.handle,
                                     static_cast<std::size_t>(r.rank * kCount) * sizeof(int), 5, 1, 0, r.comm, nullptr),
                       r.comm),
              "");
          ASSERT_EQ(error_of(ncclSignal(peer, 5, 1, 0, r.comm, nullptr), r.comm), "");
        }
        ASSERT_EQ(error_of(ncclWaitSignal(r.n, all.data(), r.comm, nullptr), r.comm), "");
        for (int peer = 0; peer < r.n; ++peer) ASSERT_EQ(window.ints()[peer * kCount + kCount - 1], 10 * round + peer);
        int value = 0;  // no rank puts before all have read
        ASSERT_EQ(error_of(ncclAllReduce(&value, &value, 1, ncclInt32, ncclSum, r.comm, nullptr)), "");
      }
      EXPECT_THAT(error_of(ncclSignal(0, 16, 0, 0, r.comm, nullptr), r.comm), StartsWith("4: sigIdx: 16 given"));
      EXPECT_THAT(error_of(ncclSignal(r.n, 0, 0, 0, r.comm, nullptr), r.comm), StartsWith("4: peer: "));
      EXPECT_THAT(
          error_of(ncclPutSignal(data.data(), kCount, ncclInt32, 0, window.handle, 12'000, 0, 0, 0, r.comm, nullptr),
                   r.comm),
          StartsWith("4: offset: 12000 given"));
      EXPECT_THAT(
          error_of(ncclPutSignal(data.data(), kCount, ncclInt32, 0, window.handle, 11'996, 0, 0, 0, r.comm, nullptr),
                   r.comm),
          StartsWith("4: offset: "));
      EXPECT_EQ(error_of(ncclCommWindowDeregister(r.comm, window.handle)), "");
      EXPECT_EQ(error_of(ncclMemFree(window.memory)), "");
    });
}

TEST(NcclMemory, OfACommunicatorIsSmall) {
  for (const int n : {1, 2, 8})
    run(n, [](const Rank& r) {
      const std::uint64_t total = stat(r.comm, ncclStatGpuMemTotal);
      if (r.rank == 0) fmt::print("a communicator of {} ranks takes {} MiB\n", r.n, total >> 20);
      if (r.n == 1) {
        EXPECT_EQ(total, 0);
      }
      EXPECT_LE(total, std::uint64_t{16} << 20);
      EXPECT_EQ(total, stat(r.comm, ncclStatGpuMemSuspend) + stat(r.comm, ncclStatGpuMemPersist));
      int number = r.rank;  // staging comes with the first call
      ASSERT_EQ(error_of(ncclAllReduce(&number, &number, 1, ncclInt32, ncclSum, r.comm, nullptr), r.comm), "");
      EXPECT_EQ(number, r.n * (r.n - 1) / 2);
      const std::uint64_t staging = stat(r.comm, ncclStatGpuMemTotal) - total;
      EXPECT_EQ(staging > 0, r.n > 1);
      EXPECT_LE(staging, std::uint64_t{16} << 20);
    });
}

TEST(NcclMemory, IsGivenBackAndComesAgain) {
  for (const int n : {1, 3})
    run(n, [](const Rank& r) {
      std::vector<int> data(300'000);
      const auto sum = [&] {
        std::fill(data.begin(), data.end(), r.rank);
        return error_of(ncclAllReduce(data.data(), data.data(), data.size(), ncclInt32, ncclSum, r.comm, nullptr),
                        r.comm);
      };
      ASSERT_EQ(sum(), "");  // staging comes with the first call
      const auto total = stat(r.comm, ncclStatGpuMemTotal), given_back = stat(r.comm, ncclStatGpuMemSuspend);
      for (int round = 0; round < 3; ++round) {
        ASSERT_EQ(sum(), "");
        ASSERT_THAT(data, Each(r.n * (r.n - 1) / 2));
        ASSERT_EQ(error_of(ncclCommSuspend(r.comm, kSuspendMemory)), "");
        EXPECT_THAT(sum(), StartsWith("5: comm: the communicator is suspended"));
        EXPECT_EQ(stat(r.comm, ncclStatGpuMemTotal), total - given_back);
        EXPECT_EQ(stat(r.comm, ncclStatGpuMemSuspended), r.n == 1 ? 0U : 1U);
        ASSERT_EQ(error_of(ncclCommResume(r.comm)), "");
      }
      EXPECT_EQ(stat(r.comm, ncclStatGpuMemTotal), total);
      EXPECT_THAT(error_of(ncclCommResume(r.comm), r.comm), StartsWith("5: comm: the communicator is not suspended"));
      EXPECT_EQ(ncclCommSuspend(r.comm, 0), ncclInvalidArgument);
      EXPECT_EQ(ncclCommMemStats(r.comm, static_cast<ncclCommMemStat_t>(9), nullptr), ncclInvalidArgument);
      ASSERT_EQ(error_of(ncclCommSuspend(r.comm, kSuspendMemory)), "");  // the end finds it suspended
    });
}

TEST(NcclMemory, IsAbortedWhileItIsGivenBack) {
  std::atomic<int> suspended = 0;
  run(2, [&](Rank& r) {
    ASSERT_EQ(error_of(ncclCommSuspend(r.comm, kSuspendMemory)), "");
    for (++suspended; suspended < 2;) std::this_thread::yield();
    if (r.rank == 0) {
      EXPECT_EQ(error_of(ncclCommAbort(r.comm)), "");
    }
    if (r.rank == 0) r.comm = nullptr;
    if (r.rank == 1) {
      EXPECT_EQ(ncclCommResume(r.comm), ncclRemoteError);
    }
  });
}

}  // namespace
}  // namespace tandem::nccl_test
