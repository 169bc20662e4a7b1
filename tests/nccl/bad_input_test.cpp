// Wrong calls: NCCL's code, and a text that says which argument.
#include <cstdlib>
#include <cstring>

#include "program.h"

namespace tandem::nccl_test {
namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;

ncclUniqueId new_id() {
  ncclUniqueId id;
  EXPECT_EQ(error_of(ncclGetUniqueId(&id)), "");
  return id;
}

TEST(NcclBadInput, NamesThePlaceThatIsNotThere) {
  const ncclUniqueId id = new_id();
  ncclComm_t comm = reinterpret_cast<ncclComm_t>(1);
  EXPECT_THAT(error_of(ncclCommInitRank(nullptr, 1, id, 0)), StartsWith("4: comm: NULL given"));
  EXPECT_THAT(error_of(ncclCommInitRank(&comm, 0, id, 0)), StartsWith("4: nranks: 0 given"));
  EXPECT_EQ(comm, nullptr);
  EXPECT_THAT(error_of(ncclCommInitRank(&comm, 2, id, 2)), StartsWith("4: rank: 2 given, allowed are 0 to 1"));
  EXPECT_THAT(error_of(ncclCommInitRank(&comm, 2, id, -1)), StartsWith("4: rank: -1 given"));
  EXPECT_EQ(ncclCommInitRank(&comm, 1, ncclUniqueId{}, 0), ncclInvalidArgument);
  EXPECT_THAT(error_of(ncclCommInitRankScalable(&comm, 1, 0, 0, nullptr, nullptr)), StartsWith("4: nId: 0 given"));
  EXPECT_THAT(error_of(ncclCommInitAll(nullptr, 1, nullptr)), StartsWith("4: comm: NULL given"));
  EXPECT_THAT(error_of(ncclCommInitAll(&comm, 0, nullptr)), StartsWith("4: ndev: 0 given"));
  const int twice[] = {1, 1};
  ncclComm_t two[2];
  EXPECT_THAT(error_of(ncclCommInitAll(two, 2, twice)), StartsWith("5: devlist: a device given twice"));
  EXPECT_THAT(error_of(ncclGetUniqueId(nullptr)), StartsWith("4: uniqueId: NULL given"));
}

TEST(NcclBadInput, NamesTheFieldOfAConfiguration) {
  const ncclUniqueId id = new_id();
  ncclComm_t comm = nullptr;
  const auto error = [&](const auto& change) {
    ncclConfig_t wrong = config();
    change(wrong);
    return error_of(ncclCommInitRankConfig(&comm, 1, id, 0, &wrong));
  };
  EXPECT_THAT(error([](auto& c) { c.magic = 1; }), StartsWith("4: config.magic: 0x1 given"));
  EXPECT_THAT(error([](auto& c) { c.size = 8; }), StartsWith("4: config.size: 8 given"));
  EXPECT_THAT(error([](auto& c) { c.blocking = 2; }), StartsWith("4: config.blocking: 2 given"));
  EXPECT_THAT(error([](auto& c) { c.maxCTAs = 0; }), StartsWith("4: config.maxCTAs: 0 given"));
  EXPECT_THAT(error([](auto& c) { c.maxCTAs = 2, c.minCTAs = 3; }), StartsWith("4: config.minCTAs: 3 given"));
  EXPECT_THAT(error([](auto& c) { c.CTAPolicy = 9; }), StartsWith("4: config.CTAPolicy: 9 given"));
  EXPECT_THAT(error([](auto& c) { c.graphUsageMode = 3; }), StartsWith("4: config.graphUsageMode: 3 given"));
  EXPECT_THAT(error([](auto& c) { c.splitShare = 2; }), StartsWith("4: config.splitShare: 2 given"));
}

TEST(NcclBadInput, ReadsNoMoreOfAConfigurationThanItHas) {
  // The configuration of 2.14 ends with `blocking`, later ones are longer than this library knows.
  struct {
    ncclConfig_t known = config();
    int later[4] = {7, 7, 7, 7};
  } longer;
  longer.known.size = sizeof(longer);
  ncclConfig_t shorter = config();
  shorter.size = offsetof(ncclConfig_t, cgaClusterSize);
  shorter.maxCTAs = -5;  // not there
  for (ncclConfig_t* const given : {&longer.known, &shorter}) {
    ncclComm_t comm = nullptr;
    EXPECT_EQ(error_of(ncclCommInitRankConfig(&comm, 1, new_id(), 0, given)), "");
    EXPECT_EQ(error_of(ncclCommDestroy(comm)), "");
  }
}

TEST(NcclBadInput, NamesTheArgumentOfACall) {
  run(1, [](const Rank& r) {
    float in[4] = {1, 2, 3, 4}, out[4] = {};
    const auto type = static_cast<ncclDataType_t>(12);
    const auto op = static_cast<ncclRedOp_t>(5);
    const auto reduce = [&](void* to, std::size_t count, ncclDataType_t of, ncclRedOp_t by) {
      return error_of(ncclAllReduce(in, to, count, of, by, r.comm, nullptr), r.comm);
    };
    EXPECT_THAT(reduce(nullptr, 4, ncclFloat32, ncclSum), StartsWith("4: recvbuff: NULL given"));
    EXPECT_THAT(reduce(out, 4, type, ncclSum), StartsWith("4: datatype: 12 given, allowed are 0 to 11"));
    EXPECT_THAT(reduce(out, 4, ncclFloat32, op), StartsWith("4: op: 5 given"));
    EXPECT_THAT(reduce(out, 4, ncclFloat32, static_cast<ncclRedOp_t>(-1)), StartsWith("4: op: -1 given"));
    EXPECT_THAT(reduce(out, std::size_t{1} << 60, ncclFloat32, ncclSum), StartsWith("4: count: "));
    EXPECT_THAT(reduce(in + 1, 3, ncclFloat32, ncclSum), StartsWith("4: "));  // they overlap
    EXPECT_THAT(error_of(ncclReduce(in, out, 4, ncclFloat32, ncclSum, 1, r.comm, nullptr)),
                StartsWith("4: root: 1 given, allowed are 0 to 0"));
    EXPECT_THAT(error_of(ncclSend(in, 4, ncclFloat32, 1, r.comm, nullptr)), StartsWith("4: peer: 1 given"));
    EXPECT_THAT(error_of(ncclRecv(nullptr, 4, ncclFloat32, 0, r.comm, nullptr)), StartsWith("4: recvbuff: NULL"));
    EXPECT_THAT(out, ::testing::Each(0));
    EXPECT_EQ(reduce(out, 4, ncclFloat32, ncclSum), "");
    EXPECT_THAT(out, ::testing::ElementsAre(1, 2, 3, 4));
  });
}

TEST(NcclBadInput, KnowsHandlesThatAreNone) {
  ncclComm_t destroyed = nullptr;
  ASSERT_EQ(error_of(ncclCommInitAll(&destroyed, 1, nullptr)), "");
  ASSERT_EQ(error_of(ncclCommDestroy(destroyed)), "");
  float data = 0;
  int number = 0;
  ncclResult_t state = ncclSuccess;
  ncclComm_t part = nullptr;
  for (const ncclComm_t comm : {destroyed, static_cast<ncclComm_t>(nullptr), reinterpret_cast<ncclComm_t>(64)}) {
    EXPECT_THAT(error_of(ncclAllReduce(&data, &data, 1, ncclFloat32, ncclSum, comm, nullptr)), StartsWith("4: comm: "));
    EXPECT_EQ(ncclCommCount(comm, &number), ncclInvalidArgument);
    EXPECT_EQ(ncclCommGetAsyncError(comm, &state), ncclInvalidArgument);
    EXPECT_EQ(ncclCommSplit(comm, 0, 0, &part, nullptr), ncclInvalidArgument);
    EXPECT_EQ(ncclCommRevoke(comm, 0), ncclInvalidArgument);
    const ncclResult_t expected = comm == nullptr ? ncclSuccess : ncclInvalidArgument;
    EXPECT_EQ(ncclCommDestroy(comm), expected);
    EXPECT_EQ(ncclCommAbort(comm), expected);
  }
}

TEST(NcclBadInput, NamesTheRanksThatCannotBeLeftOut) {
  run(1, [](const Rank& r) {
    ncclComm_t rest = nullptr;
    int none[] = {0};
    EXPECT_THAT(error_of(ncclCommShrink(r.comm, none, 1, &rest, nullptr, 0)), StartsWith("4: excludeRanksCount: 1"));
    EXPECT_THAT(error_of(ncclCommShrink(r.comm, none, 1, &rest, nullptr, 2)), StartsWith("4: shrinkFlags: 2"));
    EXPECT_THAT(error_of(ncclCommSplit(r.comm, -2, 0, &rest, nullptr)), StartsWith("4: color: -2"));
    EXPECT_THAT(error_of(ncclCommGrow(r.comm, 1, nullptr, -1, &rest, nullptr)), StartsWith("4: nRanks: 1"));
    EXPECT_THAT(error_of(ncclCommGrow(r.comm, 2, nullptr, 0, &rest, nullptr)), StartsWith("4: rank: 0"));
    EXPECT_THAT(error_of(ncclCommRevoke(r.comm, 1)), StartsWith("4: revokeFlags: 1"));
  });
}

TEST(NcclBadInput, LeavesAnOperationThatNothingTakes) {
  run(1, [](const Rank& r) {
    float scalar = 2, data = 1;
    auto op = ncclSum;
    EXPECT_EQ(ncclRedOpCreatePreMulSum(&op, nullptr, ncclFloat32, ncclScalarHostImmediate, r.comm),
              ncclInvalidArgument);
    EXPECT_EQ(ncclAllReduce(&data, &data, 1, ncclFloat32, op, r.comm, nullptr), ncclInvalidArgument);
    ASSERT_EQ(error_of(ncclRedOpCreatePreMulSum(&op, &scalar, ncclFloat32, ncclScalarHostImmediate, r.comm)), "");
    EXPECT_THAT(error_of(ncclAllReduce(&data, &data, 1, ncclInt32, op, r.comm, nullptr)),
                StartsWith("4: datatype: i32 given, allowed is f32"));
    EXPECT_EQ(error_of(ncclRedOpDestroy(op, r.comm)), "");
    EXPECT_EQ(ncclRedOpDestroy(op, r.comm), ncclInvalidArgument);
    EXPECT_EQ(ncclRedOpDestroy(ncclSum, r.comm), ncclInvalidArgument);
  });
}

// A communicator of one rank has a world since its first sum with a factor.
TEST(NcclBadInput, LetsOneRankNotWaitForItself) {
  run(1, [](const Rank& r) {
    float scalar = 2, data = 3;
    auto op = ncclSum;
    ASSERT_EQ(error_of(ncclRedOpCreatePreMulSum(&op, &scalar, ncclFloat32, ncclScalarHostImmediate, r.comm)), "");
    ASSERT_EQ(error_of(ncclAllReduce(&data, &data, 1, ncclFloat32, op, r.comm, nullptr), r.comm), "");
    EXPECT_EQ(data, 6);
    ncclWaitSignalDesc_t never{1, 0, 0, 0};
    EXPECT_THAT(error_of(ncclWaitSignal(1, &never, r.comm, nullptr), r.comm),
                StartsWith("5: signal: one rank waits for a signal"));
    EXPECT_EQ(error_of(ncclRedOpDestroy(op, r.comm)), "");
  });
}

TEST(NcclMemory, IsAllocatedRegisteredAndFreed) {
  run(1, [](const Rank& r) {
    void* memory = nullptr;
    ASSERT_EQ(error_of(ncclMemAlloc(&memory, 5000)), "");
    std::memset(memory, 1, 5000);
    void* handle = nullptr;
    EXPECT_EQ(error_of(ncclCommRegister(r.comm, memory, 5000, &handle)), "");
    EXPECT_EQ(error_of(ncclCommDeregister(r.comm, handle)), "");
    EXPECT_THAT(error_of(ncclCommDeregister(r.comm, handle)), StartsWith("4: handle: "));
    ncclWindow_t window = nullptr;
    EXPECT_EQ(error_of(ncclCommWindowRegister(r.comm, memory, 5000, &window, kWindowSymmetric)), "");
    void* begin = nullptr;
    EXPECT_EQ(error_of(ncclWinGetUserPtr(r.comm, window, &begin)), "");
    EXPECT_EQ(begin, memory);
    EXPECT_EQ(ncclCommDeregister(r.comm, window), ncclInvalidArgument);
    EXPECT_EQ(error_of(ncclMemFree(memory)), "");  // some programs free before they deregister
    EXPECT_EQ(error_of(ncclCommWindowDeregister(r.comm, window)), "");
    EXPECT_THAT(error_of(ncclMemFree(memory)), StartsWith("4: ptr: "));
    EXPECT_EQ(error_of(ncclMemFree(nullptr)), "");
    EXPECT_THAT(error_of(ncclCommWindowRegister(r.comm, &begin, 8, &window, 16)), StartsWith("4: winFlags: 16"));
    EXPECT_THAT(error_of(ncclCommRegister(r.comm, &begin, 0, &handle)), StartsWith("4: size: 0"));
    EXPECT_THAT(error_of(ncclMemAlloc(&memory, std::size_t{1} << 60)), StartsWith("4: size: "));
  });
}

TEST(NcclRefused, SayThatTheyAreAndSetTheirOutputs) {
  run(1, [](const Rank& r) {
    EXPECT_THAT(error_of(ncclDevCommCreate(r.comm, nullptr, nullptr)), StartsWith("5: ncclDevCommCreate: "));
    void* pointer = &pointer;
    EXPECT_EQ(ncclGetLsaMultimemDevicePointer(nullptr, 0, &pointer), ncclInvalidUsage);
    EXPECT_EQ(pointer, nullptr);
    ncclSimInfo_t info{sizeof(info), kSimInfoMagic, 22809, 5};
    float data = 1;
    EXPECT_EQ(ncclGroupStart(), ncclSuccess);
    EXPECT_EQ(error_of(ncclBcast(&data, 1, ncclFloat32, 0, r.comm, nullptr)), "");
    EXPECT_EQ(error_of(ncclGroupSimulateEnd(&info)), "");
    EXPECT_EQ(info.estimatedTime, 0);             // one rank
    EXPECT_EQ(ncclGroupEnd(), ncclInvalidUsage);  // the group is gone
    EXPECT_EQ(ncclGroupSimulateEnd(&info), ncclInvalidUsage);
    info.magic = 0;
    EXPECT_EQ(ncclGroupSimulateEnd(&info), ncclInvalidArgument);
  });
}

TEST(NcclInformation, IsTheVersionWhoseInterfaceIsHere) {
  int version = 0;
  EXPECT_EQ(error_of(ncclGetVersion(&version)), "");
  EXPECT_EQ(version, 22809);
  ::setenv("TANDEM_NCCL_VERSION", "22907", 1);
  EXPECT_EQ(error_of(ncclGetVersion(&version)), "");
  EXPECT_EQ(version, 22907);
  ::setenv("TANDEM_NCCL_VERSION", "new", 1);
  EXPECT_THAT(error_of(ncclGetVersion(&version)), StartsWith("4: TANDEM_NCCL_VERSION: 'new' given"));
  ::unsetenv("TANDEM_NCCL_VERSION");
  EXPECT_EQ(ncclGetVersion(nullptr), ncclInvalidArgument);
  EXPECT_THAT(tandem_nccl_identity(), StartsWith("Tandem "));
  for (int code = 0; code < 9; ++code) EXPECT_STRNE(ncclGetErrorString(static_cast<ncclResult_t>(code)), "");
  ncclResetDebugInit();
}

}  // namespace
}  // namespace tandem::nccl_test
