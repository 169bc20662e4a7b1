#pragma once
/// The types, numbers and layouts of NCCL's C interface (abi.h).

#include <climits>
#include <cstddef>
#include <cstdint>
#include <initializer_list>

extern "C" {

using cudaEvent_t = struct CUevent_st*;
using cudaStream_t = struct CUstream_st*;
using ncclComm_t = struct ncclComm*;
using ncclWindow_t = struct ncclWindow_vidmem*;
using ncclParamHandle_t = struct ncclParamHandle*;

struct ncclUniqueId {
  char internal[128];
};

enum ncclResult_t {
  ncclSuccess = 0,
  ncclUnhandledCudaError = 1,
  ncclSystemError = 2,
  ncclInternalError = 3,
  ncclInvalidArgument = 4,
  ncclInvalidUsage = 5,
  ncclRemoteError = 6,
  ncclInProgress = 7,
  ncclTimeout = 8,
  ncclNumResults = 9,
};

enum ncclRedOp_t {
  ncclSum = 0,
  ncclProd = 1,
  ncclMax = 2,
  ncclMin = 3,
  ncclAvg = 4,
  ncclNumOps = 5,  ///< the first number of an operation that a program makes
  ncclMaxRedOp = INT_MAX,
};

enum ncclDataType_t {
  ncclInt8 = 0,
  ncclUint8 = 1,
  ncclInt32 = 2,
  ncclUint32 = 3,
  ncclInt64 = 4,
  ncclUint64 = 5,
  ncclFloat16 = 6,
  ncclFloat32 = 7,
  ncclFloat64 = 8,
  ncclBfloat16 = 9,
  ncclFloat8e4m3 = 10,
  ncclFloat8e5m2 = 11,
  ncclNumTypes = 12,
};

enum ncclScalarResidence_t { ncclScalarDevice = 0, ncclScalarHostImmediate = 1 };

enum ncclCommMemStat_t {
  ncclStatGpuMemSuspend = 0,    ///< bytes that a suspension gives back
  ncclStatGpuMemSuspended = 1,  ///< 1 while the communicator is suspended
  ncclStatGpuMemPersist = 2,    ///< bytes that it keeps
  ncclStatGpuMemTotal = 3,
};

enum ncclEncryptionMode_t { NCCL_ENCRYPTION_MODE_NONE = 0, NCCL_ENCRYPTION_MODE_PSK = 1 };

/// Numbers that nccl.h has as macros.
inline constexpr int kConfigUndefined = INT_MIN;
inline constexpr unsigned kConfigMagic = 0xcafebeef;
inline constexpr unsigned kSimInfoMagic = 0x74685283;
inline constexpr int kNoColor = -1;
inline constexpr int kShrinkAbort = 1;
inline constexpr int kWindowSymmetric = 1;
inline constexpr int kMostWindowFlags = 15;
inline constexpr int kSuspendMemory = 1;
inline constexpr int kMostCtaPolicy = 3;

/// A configuration. Later versions append fields, and `size` says how many the caller knows.
struct ncclConfig_v23100 {
  std::size_t size;
  unsigned int magic;
  unsigned int version;
  int blocking;
  int cgaClusterSize;
  int minCTAs;
  int maxCTAs;
  const char* netName;
  int splitShare;
  int trafficClass;
  const char* commName;
  int collnetEnable;
  int CTAPolicy;
  int shrinkShare;
  int nvlsCTAs;
  int nChannelsPerNetPeer;
  int nvlinkCentricSched;
  int graphUsageMode;  // from 2.29 on
  int numRmaCtx;
  int maxP2pPeers;
  int graphStreamOrdering;
  int launchOrderImplicit;  // from 2.31 on
  int numRmaSig;
  int rmaEagerInit;
  int hostCftMode;
  int nvlsHostMode;
};
using ncclConfig_t = ncclConfig_v23100;

/// An option of one vendor's library, in a list. Tandem defines none and ignores all.
struct ncclConfigExt {
  ncclConfigExt* next;
  struct {
    int vendorId;
    int optionId;
  } key;
  union {
    int i;
    const char* s;
    void* raw;
  } val;
};
using ncclConfigExt_t = ncclConfigExt;

/// The configuration of one collective.
struct ncclCollConfig_v23200 {
  std::size_t size;
  unsigned int magic;
  unsigned int version;
  ncclConfigExt_t* ext;
  int minCTAs;
  int maxCTAs;
  int nvlsCTAs;
  int cgaClusterSize;
  const char* algSelection;
  int forceAlgSelection;
  int CTAPolicy;
  std::uint64_t userProfilerTag;
  cudaEvent_t launchCompletionEvent;
};
using ncclCollConfig_t = ncclCollConfig_v23200;

struct ncclSimInfo_v22200 {
  std::size_t size;
  unsigned int magic;
  unsigned int version;
  float estimatedTime;
};
using ncclSimInfo_t = ncclSimInfo_v22200;

/// The abilities of a communicator. Later versions append fields; the caller's `size` says how many it knows.
struct ncclCommProperties {
  std::size_t size;
  unsigned int magic;
  unsigned int version;
  int rank;
  int nRanks;
  int cudaDev;
  int nvmlDev;
  bool deviceApiSupport;
  bool multimemSupport;
  int ginType;
  int nLsaTeams;
  bool hostRmaSupport;
  int railedGinType;
  std::uint64_t commHash;
  int ginMinStride;
  int ginConnectionType;
  bool ginSupport[64];
  std::size_t devCommRuntimeVersionSize;
  bool cftSupport;
  bool cftMulticastSupport;
  bool cftCountedSupport;
};
using ncclCommProperties_t = ncclCommProperties;

struct ncclEncryptionConfig_v23200 {
  std::size_t size;
  unsigned int magic;
  unsigned int version;
  int mode;
  const char* psk;
};
using ncclEncryptionConfig_t = ncclEncryptionConfig_v23200;

/// How many signals of one peer a wait expects.
struct ncclWaitSignalDesc_t {
  int opCnt;
  int peer;
  int sigIdx;
  int ctx;
};

struct ncclTeam {
  int nRanks, rank, stride;
};

}  // extern "C"

namespace tandem::nccl {

/// Returns a configuration in which nothing is set.
inline ncclConfig_t undefined_config() {
  ncclConfig_t all{};
  all.size = sizeof(all);
  all.magic = kConfigMagic;
  for (int* const field : {&all.blocking,
                           &all.cgaClusterSize,
                           &all.minCTAs,
                           &all.maxCTAs,
                           &all.splitShare,
                           &all.trafficClass,
                           &all.collnetEnable,
                           &all.CTAPolicy,
                           &all.shrinkShare,
                           &all.nvlsCTAs,
                           &all.nChannelsPerNetPeer,
                           &all.nvlinkCentricSched,
                           &all.graphUsageMode,
                           &all.numRmaCtx,
                           &all.maxP2pPeers,
                           &all.graphStreamOrdering,
                           &all.launchOrderImplicit,
                           &all.numRmaSig,
                           &all.rmaEagerInit,
                           &all.hostCftMode,
                           &all.nvlsHostMode})
    *field = kConfigUndefined;
  return all;
}

}  // namespace tandem::nccl
