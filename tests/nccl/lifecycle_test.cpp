// Communicators: parts, larger ones, ends, and calls that do not block.
#include <atomic>
#include <barrier>
#include <functional>
#include <mutex>
#include <vector>

#include "program.h"

namespace tandem::nccl_test {
namespace {

using ::testing::AnyOf;
using ::testing::HasSubstr;

/// Waits until the communicator is done, and returns its state.
ncclResult_t settled(ncclComm_t comm) {
  ncclResult_t state = ncclInProgress;
  while (state == ncclInProgress) {
    EXPECT_EQ(error_of(ncclCommGetAsyncError(comm, &state)), "");
    std::this_thread::yield();
  }
  return state;
}

int sum_over(ncclComm_t comm, int value) {
  EXPECT_EQ(error_of(ncclAllReduce(&value, &value, 1, ncclInt32, ncclSum, comm, nullptr)), "");
  return value;
}

TEST(NcclCommunicator, SplitsByColorAndKey) {
  run(5, [](const Rank& r) {
    ncclComm_t part = r.comm;
    const int color = r.rank == 4 ? kNoColor : r.rank % 2;
    ASSERT_EQ(error_of(ncclCommSplit(r.comm, color, -r.rank, &part, nullptr)), "");
    if (r.rank == 4) {
      EXPECT_EQ(part, nullptr);
    } else {
      int rank = -1, n = -1;
      EXPECT_EQ(error_of(ncclCommUserRank(part, &rank)), "");
      EXPECT_EQ(error_of(ncclCommCount(part, &n)), "");
      EXPECT_EQ(n, 2);
      EXPECT_EQ(rank, r.rank < 2 ? 1 : 0);  // the larger number has the smaller key
      EXPECT_EQ(sum_over(part, r.rank), r.rank % 2 == 0 ? 2 : 4);
      EXPECT_EQ(error_of(ncclCommDestroy(part)), "");
    }
    EXPECT_EQ(sum_over(r.comm, 1), 5);
  });
}

TEST(NcclCommunicator, ShrinksWithoutSomeRanks) {
  run(4, [](const Rank& r) {
    int excluded[] = {2, 0};
    if (r.rank % 2 == 0) return;
    for (int round = 0; round < 2; ++round) {
      ncclComm_t rest = nullptr;
      ASSERT_EQ(error_of(ncclCommShrink(r.comm, excluded, 2, &rest, nullptr, 0)), "");
      int rank = -1;
      EXPECT_EQ(error_of(ncclCommUserRank(rest, &rank)), "");
      EXPECT_EQ(rank, r.rank / 2);
      EXPECT_EQ(sum_over(rest, r.rank), 4);
      EXPECT_EQ(error_of(ncclCommDestroy(rest)), "");
    }
  });
}

TEST(NcclCommunicator, ShrinksAndEndsWhatTheOthersWaitFor) {
  run(3, [](const Rank& r) {
    int excluded[] = {0};
    if (r.rank == 0) return;
    int value = 1;
    // Rank 0 never calls. The revocation comes while the call waits, or before it begins.
    std::thread blocked([&] {
      EXPECT_THAT(ncclAllReduce(&value, &value, 1, ncclInt32, ncclSum, r.comm, nullptr),
                  AnyOf(ncclRemoteError, ncclInvalidUsage));
    });
    ncclComm_t rest = nullptr;
    ASSERT_EQ(error_of(ncclCommRevoke(r.comm, 0)), "");
    blocked.join();
    EXPECT_EQ(ncclAllReduce(&value, &value, 1, ncclInt32, ncclSum, r.comm, nullptr), ncclInvalidUsage);
    EXPECT_EQ(ncclCommSplit(r.comm, 0, 0, &rest, nullptr), ncclInvalidUsage);
    ASSERT_EQ(error_of(ncclCommShrink(r.comm, excluded, 1, &rest, nullptr, kShrinkAbort)), "");
    EXPECT_EQ(sum_over(rest, 1), 2);
    EXPECT_EQ(error_of(ncclCommDestroy(rest)), "");
  });
}

TEST(NcclCommunicator, GrowsByNewRanks) {
  ncclUniqueId id, larger;
  ASSERT_EQ(error_of(ncclGetUniqueId(&id)), "");
  std::atomic<bool> has_id = false;
  on_threads(5, [&](int rank) {
    constexpr int kOld = 2, kNew = 5;
    ncclComm_t old = nullptr, all = nullptr;
    if (rank < kOld) {
      ASSERT_EQ(error_of(ncclCommInitRank(&old, kOld, id, rank)), "");
      if (rank == 1) {
        ASSERT_EQ(error_of(ncclCommGetUniqueId(old, &larger)), "");
        has_id = true;
      }
      ASSERT_EQ(error_of(ncclCommGrow(old, kNew, nullptr, -1, &all, nullptr)), "");
    } else {
      while (!has_id) std::this_thread::yield();
      ASSERT_EQ(error_of(ncclCommGrow(nullptr, kNew, &larger, rank, &all, nullptr)), "");
    }
    int number = -1;
    EXPECT_EQ(error_of(ncclCommUserRank(all, &number)), "");
    EXPECT_EQ(number, rank);
    EXPECT_EQ(sum_over(all, rank), 10);
    for (const ncclComm_t comm : {old, all}) EXPECT_EQ(error_of(ncclCommDestroy(comm)), "");
  });
}

TEST(NcclCommunicator, IsAbortedWhileACallWaits) {
  run(2, [](Rank& r) {
    int value = 1;
    if (r.rank == 1) return;  // destroys it, and never calls
    std::atomic<bool> has_ended = false;
    std::thread blocked([&] {
      const ncclResult_t result = ncclAllReduce(&value, &value, 1, ncclInt32, ncclSum, r.comm, nullptr);
      EXPECT_THAT(result, AnyOf(ncclRemoteError, ncclInvalidArgument));  // while it waits, or before it begins
      has_ended = true;
    });
    EXPECT_EQ(error_of(ncclCommAbort(r.comm)), "");
    blocked.join();
    EXPECT_TRUE(has_ended);
    EXPECT_EQ(ncclCommDestroy(r.comm), ncclInvalidArgument);  // it is gone
    r.comm = nullptr;
  });
}

class NcclLifecycle : public ::testing::TestWithParam<int> {};

/// Rank 0 aborts, each time after something else. The others have a call that waits for it, and abort too. Three ranks
/// have all phases, other numbers every second one.
TEST_P(NcclLifecycle, EndsByAnAbortInEveryPhase) {
  int value = 1;
  const std::vector<std::function<void(const Rank&)>> phases{
      [](const Rank&) {},
      [](const Rank& r) { EXPECT_EQ(sum_over(r.comm, 1), r.n); },
      [](const Rank& r) { EXPECT_EQ(error_of(ncclCommFinalize(r.comm)), ""); },
      [](const Rank& r) { EXPECT_EQ(error_of(ncclCommRevoke(r.comm, 0)), ""); },
      [](const Rank& r) { EXPECT_EQ(error_of(ncclCommSuspend(r.comm, kSuspendMemory)), ""); },
      [&](const Rank& r) {
        EXPECT_EQ(error_of(ncclGroupStart()), "");
        int own = value;
        EXPECT_EQ(error_of(ncclBcast(&own, 1, ncclInt32, 0, r.comm, nullptr)), "");
      }};
  const auto n = static_cast<std::size_t>(GetParam());
  for (std::size_t phase = n == 3 ? 0 : n % 2; phase < phases.size(); phase += n == 3 ? 1 : 2) {
    std::barrier all_are_there(GetParam());
    ncclUniqueId id;
    ASSERT_EQ(error_of(ncclGetUniqueId(&id)), "");
    on_threads(GetParam(), [&](int i) {
      Rank r{nullptr, i, GetParam()};
      ASSERT_EQ(error_of(ncclCommInitRank(&r.comm, r.n, id, i)), "");
      phases[phase](r);
      all_are_there.arrive_and_wait();
      if (phase == 5 && i > 0) {
        EXPECT_NE(ncclGroupEnd(), ncclSuccess);
      } else if (i > 0) {  // a part or a sum, of which rank 0 has none
        int own = value;
        ncclComm_t part = nullptr;
        EXPECT_NE(i % 2 == 0 ? ncclCommSplit(r.comm, 0, 0, &part, nullptr)
                             : ncclAllReduce(&own, &own, 1, ncclInt32, ncclSum, r.comm, nullptr),
                  ncclSuccess);
      }
      EXPECT_EQ(error_of(ncclCommAbort(r.comm)), "") << phase;
      if (phase == 5 && i == 0) {
        EXPECT_EQ(ncclGroupEnd(), ncclInvalidArgument);
      }
    });
  }
}

INSTANTIATE_TEST_SUITE_P(Ranks, NcclLifecycle, ::testing::Values(1, 2, 3, 5, 8));

TEST(NcclCommunicator, IsAbortedWhileItIsMade) {
  ncclUniqueId id;
  ASSERT_EQ(error_of(ncclGetUniqueId(&id)), "");
  ncclConfig_t options = config();
  options.blocking = 0;
  ncclComm_t comm = nullptr;
  EXPECT_EQ(ncclCommInitRankConfig(&comm, 2, id, 0, &options), ncclInProgress);
  ncclResult_t state = ncclSuccess;
  EXPECT_EQ(error_of(ncclCommGetAsyncError(comm, &state)), "");
  EXPECT_EQ(state, ncclInProgress);  // rank 1 never comes
  int rank = -1;
  EXPECT_EQ(ncclCommUserRank(comm, &rank), ncclInvalidArgument);
  EXPECT_EQ(error_of(ncclCommAbort(comm)), "");
  // Rank 1 comes all the same, so that the rendezvous ends.
  ncclComm_t late = nullptr;
  const ncclResult_t result = ncclCommInitRank(&late, 2, id, 1);
  int value = 1;
  if (result == ncclSuccess) {
    EXPECT_EQ(ncclAllReduce(&value, &value, 1, ncclInt32, ncclSum, late, nullptr), ncclRemoteError);
  }
  EXPECT_EQ(error_of(ncclCommAbort(late)), "");
}

TEST(NcclCommunicator, IsAbortedWhileItsPartIsMade) {
  std::atomic<bool> is_aborted = false;
  run(3, [&](Rank& r) {
    if (r.rank == 2) return;
    ncclComm_t rest = nullptr;
    int excluded = 2;
    if (r.rank == 1) {
      while (!is_aborted) std::this_thread::yield();
      EXPECT_EQ(error_of(ncclCommShrink(r.comm, &excluded, 1, &rest, nullptr, 0)), "");
    } else {
      // It waits for rank 1, or the communicator is gone before.
      std::thread waiting([&] { ncclCommShrink(r.comm, &excluded, 1, &rest, nullptr, 0); });
      while (ncclComm_t(__atomic_load_n(&rest, __ATOMIC_ACQUIRE)) == nullptr) std::this_thread::yield();
      EXPECT_EQ(error_of(ncclCommAbort(r.comm)), "");
      r.comm = nullptr;
      is_aborted = true;
      waiting.join();
    }
    EXPECT_EQ(sum_over(rest, 1), 2);
    EXPECT_EQ(error_of(ncclCommDestroy(rest)), "");
  });
}

TEST(NcclCommunicator, NeedsNoThreadToBlock) {
  ncclUniqueId id;
  ASSERT_EQ(error_of(ncclGetUniqueId(&id)), "");
  ncclConfig_t options = config();
  options.blocking = 0;
  ncclComm_t comms[2], parts[2];
  int values[2] = {1, 2};
  for (int i = 0; i < 2; ++i) EXPECT_EQ(ncclCommInitRankConfig(&comms[i], 2, id, i, &options), ncclInProgress);
  for (const ncclComm_t comm : comms) EXPECT_EQ(settled(comm), ncclSuccess);
  for (int i = 0; i < 2; ++i)
    EXPECT_EQ(ncclAllReduce(&values[i], &values[i], 1, ncclInt32, ncclSum, comms[i], nullptr), ncclInProgress);
  for (const ncclComm_t comm : comms) EXPECT_EQ(settled(comm), ncclSuccess);
  EXPECT_THAT(values, ::testing::Each(3));
  for (int i = 0; i < 2; ++i) EXPECT_EQ(ncclCommSplit(comms[i], 0, 0, &parts[i], nullptr), ncclInProgress);
  for (const ncclComm_t part : parts) EXPECT_EQ(settled(part), ncclSuccess);
  for (const ncclComm_t part : parts) EXPECT_EQ(error_of(ncclCommDestroy(part)), "");
  for (const ncclComm_t comm : comms) EXPECT_EQ(error_of(ncclCommDestroy(comm)), "");
}

TEST(NcclCommunicator, TakesNoCallsOnceItIsFinalized) {
  run(2, [](const Rank& r) {
    int value = 1;
    EXPECT_EQ(sum_over(r.comm, 1), 2);
    EXPECT_EQ(error_of(ncclCommFinalize(r.comm)), "");
    ncclResult_t state = ncclInternalError;
    EXPECT_EQ(error_of(ncclCommGetAsyncError(r.comm, &state)), "");
    EXPECT_EQ(state, ncclSuccess);
    EXPECT_EQ(ncclAllReduce(&value, &value, 1, ncclInt32, ncclSum, r.comm, nullptr), ncclInvalidArgument);
    EXPECT_EQ(ncclCommFinalize(r.comm), ncclInvalidArgument);
  });
}

TEST(NcclCommunicator, HearsOfCallsThatDiffer) {
  run(2, [](const Rank& r) {
    std::vector<int> data(8);
    EXPECT_EQ(ncclAllReduce(data.data(), data.data(), r.rank == 0 ? 8 : 4, ncclInt32, ncclSum, r.comm, nullptr),
              ncclInvalidArgument);
    EXPECT_THAT(ncclGetLastError(r.comm), HasSubstr("count"));
  });
}

TEST(NcclCommunicator, IsMadeFromSeveralIds) {
  std::vector<ncclUniqueId> ids(2);
  for (ncclUniqueId& id : ids) ASSERT_EQ(error_of(ncclGetUniqueId(&id)), "");
  on_threads(3, [&](int rank) {
    ncclComm_t comm = nullptr;
    ASSERT_EQ(error_of(ncclCommInitRankScalable(&comm, 3, rank, 2, ids.data(), nullptr)), "");
    EXPECT_EQ(sum_over(comm, 1), 3);
    EXPECT_EQ(error_of(ncclCommDestroy(comm)), "");
  });
}

TEST(NcclCommunicator, EightOfThemLiveInAProcess) {
  run(2, [](const Rank& r) {
    std::vector<ncclComm_t> parts(7);
    for (ncclComm_t& part : parts) ASSERT_EQ(error_of(ncclCommSplit(r.comm, 0, 0, &part, nullptr)), "");
    for (int round = 0; round < 20; ++round)
      for (const ncclComm_t part : parts) ASSERT_EQ(sum_over(part, round), 2 * round);
    for (const ncclComm_t part : parts) EXPECT_EQ(error_of(ncclCommDestroy(part)), "");
  });
}

}  // namespace
}  // namespace tandem::nccl_test
