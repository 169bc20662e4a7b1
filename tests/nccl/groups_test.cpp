// Groups of calls: messages, several communicators, nesting.
#include <cstdlib>
#include <numeric>

#include "program.h"

namespace tandem::nccl_test {
namespace {

using ::testing::Each;
using ::testing::HasSubstr;

class NcclGroups : public ::testing::TestWithParam<int> {};

TEST_P(NcclGroups, ExchangePartsOfUnequalSizes) {
  run(GetParam(), [](const Rank& r) {
    const auto n = static_cast<std::size_t>(r.n), me = static_cast<std::size_t>(r.rank);
    // Rank i sends i + j elements to rank j, itself included; rank 0 sends itself none.
    std::vector<int> out(n * 2 * n, r.rank), in(n * 2 * n, -1);
    EXPECT_EQ(error_of(ncclGroupStart()), "");
    for (std::size_t peer = 0; peer < n; ++peer) {
      const int other = static_cast<int>(peer);
      EXPECT_EQ(error_of(ncclSend(&out[peer * 2 * n], me + peer, ncclInt32, other, r.comm, nullptr)), "");
      EXPECT_EQ(error_of(ncclRecv(&in[peer * 2 * n], me + peer, ncclInt32, other, r.comm, nullptr)), "");
    }
    EXPECT_EQ(error_of(ncclGroupEnd()), "");
    for (std::size_t peer = 0; peer < n; ++peer)
      for (std::size_t i = 0; i < 2 * n; ++i)
        EXPECT_EQ(in[peer * 2 * n + i], i < me + peer ? static_cast<int>(peer) : -1) << peer << " " << i;
  });
}

TEST_P(NcclGroups, HoldMoreMessagesThanALaunch) {
  run(GetParam(), [](const Rank& r) {
    constexpr int kEach = 300;
    const auto n = static_cast<std::size_t>(r.n);
    std::vector<int> out(n * kEach), in(n * kEach, -1);
    std::iota(out.begin(), out.end(), r.rank * 100'000);
    EXPECT_EQ(error_of(ncclGroupStart()), "");
    for (int peer = r.n - 1; peer >= 0; --peer)
      for (int i = 0; i < kEach; ++i) {
        const auto at = static_cast<std::size_t>(peer) * kEach + static_cast<std::size_t>(i);
        EXPECT_EQ(error_of(ncclRecv(&in[at], 1, ncclInt32, peer, r.comm, nullptr)), "");
        EXPECT_EQ(error_of(ncclSend(&out[at], 1, ncclInt32, peer, r.comm, nullptr)), "");
      }
    EXPECT_EQ(error_of(ncclGroupEnd()), "");
    for (int peer = 0; peer < r.n; ++peer)
      for (int i = 0; i < kEach; ++i)
        ASSERT_EQ(in[static_cast<std::size_t>(peer * kEach + i)], peer * 100'000 + r.rank * kEach + i);
  });
}

TEST_P(NcclGroups, RunSeveralRanksOfOneThread) {
  const int n = GetParam();
  const auto size = static_cast<std::size_t>(n);
  std::vector<ncclComm_t> comms(size);
  ASSERT_EQ(error_of(ncclCommInitAll(comms.data(), n, nullptr)), "");
  std::vector<float> sums(size), copies(size, -1);
  EXPECT_EQ(error_of(ncclGroupStart()), "");
  for (std::size_t i = 0; i < size; ++i) {
    int rank = -1, count = -1, device = -1;
    EXPECT_EQ(error_of(ncclCommUserRank(comms[i], &rank)), "");
    EXPECT_EQ(error_of(ncclCommCount(comms[i], &count)), "");
    EXPECT_EQ(error_of(ncclCommCuDevice(comms[i], &device)), "");
    EXPECT_EQ(rank, static_cast<int>(i));
    EXPECT_EQ(count, n);
    EXPECT_EQ(device, static_cast<int>(i));
    sums[i] = static_cast<float>(i + 1);
    EXPECT_EQ(error_of(ncclGroupStart()), "");
    EXPECT_EQ(error_of(ncclAllReduce(&sums[i], &sums[i], 1, ncclFloat32, ncclSum, comms[i], nullptr)), "");
    EXPECT_EQ(error_of(ncclGroupEnd()), "");
    EXPECT_EQ(sums[i], static_cast<float>(i + 1));  // nothing runs before the outermost end
    EXPECT_EQ(error_of(ncclSend(&sums[i], 1, ncclFloat32, (rank + 1) % n, comms[i], nullptr)), "");
    EXPECT_EQ(error_of(ncclRecv(&copies[i], 1, ncclFloat32, (rank + n - 1) % n, comms[i], nullptr)), "");
  }
  EXPECT_EQ(error_of(ncclGroupEnd()), "");
  const int sum = n * (n + 1) / 2;
  EXPECT_THAT(sums, Each(static_cast<float>(sum)));
  EXPECT_THAT(copies, Each(static_cast<float>(sum)));
  for (const ncclComm_t comm : comms) EXPECT_EQ(error_of(ncclCommDestroy(comm)), "");
}

INSTANTIATE_TEST_SUITE_P(Ranks, NcclGroups, ::testing::Values(1, 2, 3, 5, 8));

TEST(NcclGroup, OfRanksOnChosenDevices) {
  const int devices[] = {3, 1};
  ncclComm_t comms[2];
  ASSERT_EQ(error_of(ncclCommInitAll(comms, 2, devices)), "");
  for (int i = 0; i < 2; ++i) {
    int device = -1;
    EXPECT_EQ(error_of(ncclCommCuDevice(comms[i], &device)), "");
    EXPECT_EQ(device, devices[i]);
    EXPECT_EQ(error_of(ncclCommDestroy(comms[i])), "");
  }
  const int none[] = {0, 100'000};
  EXPECT_THAT(error_of(ncclCommInitAll(comms, 2, none)), HasSubstr("4: devlist: 100000 given"));
}

TEST(NcclGroup, GivesTheErrorOfACallAndRunsNothing) {
  run(1, [](const Rank& r) {
    float in = 1, out = 0;
    EXPECT_EQ(error_of(ncclGroupStart()), "");
    EXPECT_EQ(error_of(ncclAllReduce(&in, &out, 1, ncclFloat32, ncclSum, r.comm, nullptr)), "");
    EXPECT_EQ(ncclBcast(&in, 1, ncclFloat32, 1, r.comm, nullptr), ncclInvalidArgument);
    EXPECT_EQ(ncclGroupEnd(), ncclInvalidArgument);
    EXPECT_EQ(out, 0);
    EXPECT_EQ(error_of(ncclAllReduce(&in, &out, 1, ncclFloat32, ncclSum, r.comm, nullptr)), "");
    EXPECT_EQ(out, 1);
    EXPECT_THAT(error_of(ncclGroupEnd()), HasSubstr("5: group: ncclGroupEnd without ncclGroupStart"));
  });
}

TEST(NcclGroup, RefusesAMessageToItselfWithoutReceiver) {
  run(1, [](const Rank& r) {
    float value = 1;
    EXPECT_THAT(error_of(ncclSend(&value, 1, ncclFloat32, 0, r.comm, nullptr), r.comm),
                HasSubstr("5: group: rank 0 sends itself 1 messages and receives 0"));
  });
}

TEST(NcclGroup, TakesNoCallsBesideNewCommunicators) {
  run(1, [](const Rank& r) {
    float value = 1;
    ncclComm_t part = nullptr;
    EXPECT_EQ(error_of(ncclGroupStart()), "");
    EXPECT_EQ(error_of(ncclBcast(&value, 1, ncclFloat32, 0, r.comm, nullptr)), "");
    EXPECT_EQ(error_of(ncclCommSplit(r.comm, 0, 0, &part, nullptr)), "");
    EXPECT_THAT(error_of(ncclGroupEnd()), HasSubstr("5: group: calls and new communicators given"));
    EXPECT_EQ(error_of(ncclCommAbort(part)), "");
  });
}

TEST(NcclGroup, IsPredictedAndDoesNotRun) {
  run(2, [](const Rank& r) {
    const auto predicted = [&](std::size_t count) {
      std::vector<float> data(count, 1);
      ncclSimInfo_t info{sizeof(info), kSimInfoMagic, 22809, -1};
      EXPECT_EQ(error_of(ncclGroupStart()), "");
      EXPECT_EQ(error_of(ncclAllReduce(data.data(), data.data(), count, ncclFloat32, ncclSum, r.comm, nullptr)), "");
      EXPECT_EQ(error_of(ncclSend(data.data(), count, ncclFloat32, 1 - r.rank, r.comm, nullptr)), "");
      EXPECT_EQ(error_of(ncclRecv(data.data(), count, ncclFloat32, 1 - r.rank, r.comm, nullptr)), "");
      EXPECT_EQ(error_of(ncclGroupSimulateEnd(&info), r.comm), "");
      EXPECT_THAT(data, Each(1));
      return info.estimatedTime;
    };
    if (r.rank == 1) return;  // no other rank is needed
    const float little = predicted(1000), much = predicted(1'000'000);
    EXPECT_GT(little, 0);
    EXPECT_GT(much, 4 * little);
  });
}

/// Rounds of calls of two communicators; TANDEM_NCCL_ROUNDS sets another number for a long run.
int rounds() {
  const char* const given = std::getenv("TANDEM_NCCL_ROUNDS");
  return given != nullptr ? std::atoi(given) : 1000;
}

TEST(NcclCommunicators, OverTheSameRanksNeverStarveEachOther) {
  ncclUniqueId ids[2];
  for (ncclUniqueId& id : ids) ASSERT_EQ(error_of(ncclGetUniqueId(&id)), "");
  // Each rank has one thread for each communicator, as a program has streams.
  on_threads(4, [&](int thread) {
    const int rank = thread / 2, which = thread % 2;
    ncclComm_t comm = nullptr;
    ASSERT_EQ(error_of(ncclCommInitRank(&comm, 2, ids[which], rank)), "");
    for (int round = 0; round < rounds(); ++round) {
      int value = rank + round, all[2] = {};
      if (which == 0) {
        ASSERT_EQ(error_of(ncclAllReduce(&value, &value, 1, ncclInt32, ncclSum, comm, nullptr)), "");
        ASSERT_EQ(value, 2 * round + 1);
      } else {
        ASSERT_EQ(error_of(ncclAllGather(&value, all, 1, ncclInt32, comm, nullptr)), "");
        ASSERT_THAT(all, ::testing::ElementsAre(round, round + 1));
      }
    }
    EXPECT_EQ(error_of(ncclCommDestroy(comm)), "");
  });
}

TEST(NcclGroup, OfTwoCommunicatorsOverTheSameRanksRunsAlongside) {
  // Each thread names them in another order.
  ncclUniqueId ids[2];
  for (ncclUniqueId& id : ids) ASSERT_EQ(error_of(ncclGetUniqueId(&id)), "");
  on_threads(2, [&](int rank) {
    ncclComm_t comms[2];
    EXPECT_EQ(error_of(ncclGroupStart()), "");
    for (const int i : {rank, 1 - rank}) EXPECT_EQ(error_of(ncclCommInitRank(&comms[i], 2, ids[i], rank)), "");
    EXPECT_EQ(error_of(ncclGroupEnd()), "");
    for (int round = 0; round < 50; ++round) {
      int sum = 1, all[2] = {0, 0}, mine = rank + round;
      EXPECT_EQ(error_of(ncclGroupStart()), "");
      for (const int i : {rank, 1 - rank}) {
        if (i == 0) {
          EXPECT_EQ(error_of(ncclAllReduce(&sum, &sum, 1, ncclInt32, ncclSum, comms[0], nullptr)), "");
        } else {
          EXPECT_EQ(error_of(ncclAllGather(&mine, all, 1, ncclInt32, comms[1], nullptr)), "");
        }
      }
      ASSERT_EQ(error_of(ncclGroupEnd()), "");
      EXPECT_EQ(sum, 2);
      EXPECT_THAT(all, ::testing::ElementsAre(round, round + 1));
    }
    for (const ncclComm_t comm : comms) EXPECT_EQ(error_of(ncclCommDestroy(comm)), "");
  });
}

}  // namespace
}  // namespace tandem::nccl_test
